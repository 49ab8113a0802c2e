import { describe, expect, it } from 'vitest'
import { createSamples } from '../report.ts'
import { baselinesOf, outageCase } from './deployment.ts'
import { migratingPod } from './migrating-pod.ts'
import { migration } from './migration.ts'
import { casesOf, published, recordedOf } from './sizes.ts'

describe('MP-30: the bench of moves', () => {
  it('has the 13 sizes of the published table, and ten trials of each', () => {
    expect([...published.keys()]).toEqual([0, 0.1, 0.2, 0.5, 1, 2.5, 5, 10, 15, 20, 25, 50, 100])
    expect([migratingPod.trials, migration.trials]).toEqual([10, 10])
  })

  it('repeats the larger ones with agents that record writes', () => {
    const names = recordedOf([0, 0.1, 1], { writes: false }).map(({ name }) => name)
    expect(names).toEqual(['0.1 GB, recorded', '1 GB, recorded'])
  })

  it('reports each size beside the published figure and the Deployment of the same run, and every value as CSV', () => {
    const samples = createSamples()
    samples.add(outageCase, 's', 1.5)
    const cases = [0, 0.2, 1, 10].flatMap(size => casesOf(size, { writes: true }))
    for (const { name } of cases) samples.add(`${name}: outage at the Service`, 's', 0.3)
    const { cases: told } = samples.report('migration', baselinesOf(cases))
    expect(told.slice(1).map(it => [it.case, it.baselines])).toEqual(
      [0, 0.2, 1, 10].flatMap(size =>
        ['at rest', '1,000 writes/s'].map((load, i) => [
          `${size} GB${i === 0 ? '' : ','} ${load}: outage at the Service`,
          { 'published system': published.get(size), Deployment: 1.5 },
        ]),
      ),
    )
    expect(samples.csv().split('\n').slice(0, 2)).toEqual([
      'case,unit,trial,value',
      expect.stringContaining('1.5'),
    ])
  })

  it('loads and fills a redis of that size, in a set of its own for each size', () => {
    for (const size of published.keys()) {
      const [rest, busy] = casesOf(size, { writes: true })
      expect(rest?.subject.load).toBeUndefined()
      expect(busy?.subject.load).toBeDefined()
      expect(rest?.subject.set).toMatch(/^redis-[a-z0-9]+$/)
    }
  })
})
