import { withRecord } from '../agents.ts'
import type { Bench } from '../bench.ts'
import { inNamespace } from '../namespace.ts'
import { baselinesOf, ofDeployment } from './deployment.ts'
import { byMigration, moveTrials } from './move.ts'
import { type Case, casesOf } from './sizes.ts'

/** GB. A node needs about three times the memory of the largest one, and agents with an `--memory-budget` for two generations of it. */
const standardSizes = [0, 0.2, 1]

/** Agents with `--record-writes=Moves` move smaller memory like agents without it, GB. */
const leastRecorded = 0.1

export const migration: Bench = {
  name: 'migration',
  title:
    'a redis of each of --sizes moves to another node with its memory, at rest and under writes; beside a Deployment',
  trials: 10,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    const sizes = context.sizes ?? standardSizes
    const cases = sizes.flatMap(size => casesOf(size, { writes: true }))
    const recorded = sizes
      .filter(size => size >= leastRecorded)
      .flatMap(size => casesOf(size, { writes: true }))
      .map(it => ({ ...it, name: `${it.name}, recorded` }))
    const inOwn = (work: (namespace: string) => Promise<void>) =>
      inNamespace(context.api, 'bench-migration', context.signal, work)
    await inOwn(namespace => ofDeployment(context, namespace, samples))
    const moveAll = async (all: readonly Case[]) => {
      for (const it of all) await inOwn(namespace => moveTrials(context, namespace, it, byMigration, samples))
    }
    await moveAll(cases)
    if (recorded.length > 0) await withRecord(context, 'Moves', () => moveAll(recorded))
    return samples.report('migration', baselinesOf([...cases, ...recorded]))
  },
}
