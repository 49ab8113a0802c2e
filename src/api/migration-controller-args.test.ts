import { describe, expect, it, test } from 'vitest'
import { parseArgs } from './migration-controller-args.ts'

const refusal = (value: unknown) => {
  const parsed = parseArgs(value)
  return parsed.ok ? undefined : parsed.message
}

describe('MigrationControllerArgs', () => {
  it('the example of the design is read as it is printed', () => {
    const parsed = parseArgs({
      ...{
        dryRun: false,
        evictFailedBarePods: true,
        evictLocalStoragePods: false,
        evictSystemCriticalPods: false,
      },
      ...{ ignorePvcPods: false, flowControlQPS: '10', flowControlBurst: 1, maxMigratingPerNode: 2 },
      ...{ maxMigratingPerNamespace: 10, maxMigratingPerWorkload: '10%', maxUnavailablePerWorkload: '10%' },
      evictionPolicy: 'Eviction',
    })
    expect(parsed).toMatchObject({
      ok: true,
      args: {
        ...{ evictFailedBarePods: true, maxMigratingPerNode: 2, maxMigratingPerNamespace: 10 },
        ...{ flowControl: { perSecond: 10, burst: 1 }, evict: { perSecond: 10, burst: 1 } },
        maxMigratingPerWorkload: { type: 'percent', value: 10 },
      },
    })
  })

  it('nothing gives the defaults', () => {
    expect(parseArgs(undefined)).toEqual(parseArgs({}))
    expect(parseArgs({})).toMatchObject({
      ok: true,
      args: { isEnabled: true, maxMigratingPerNode: 2, rounding: 'Up', defaultJobTtlMs: 300_000 },
    })
  })

  it('a burst of evictions counts with the default rate', () => {
    expect(parseArgs({ evictBurst: 5 })).toMatchObject({
      ok: true,
      args: { evict: { perSecond: 10, burst: 5 } },
    })
    expect(parseArgs({ evictQPS: 2 })).toMatchObject({
      ok: true,
      args: { evict: { perSecond: 2, burst: 1 } },
    })
  })

  test.each([
    [{ maxMigratingPerNod: 2 }, 'there is no such field'],
    [{ evictionPolicy: 'Force' }, 'one of Eviction, Delete, SoftEviction'],
    [{ maxMigratingPerWorkload: '10 percent' }, 'maxMigratingPerWorkload'],
    [{ flowControlQPS: 'fast' }, 'flowControlQPS'],
    [{ dryRun: 'yes' }, 'true or false'],
    [{ labelSelector: { matchExpressions: [{ key: 'a' }] } }, 'operator'],
    [{ labelSelector: { matchExpressions: [{ operator: 'Exists' }] } }, 'the name of a label'],
    [{ labelSelector: { matchExpressions: { key: 'a', operator: 'Exists' } } }, 'a list'],
    [{ labelSelector: { matchExpressions: [{ key: 'a', operator: 'NotIn' }] } }, 'a list of texts'],
    [{ labelSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: 'b' }] } }, 'a list'],
    [{ labelSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: [1] }] } }, 'a list of texts'],
    [
      { labelSelector: { matchExpressions: [{ key: 'a', operator: 'Exists', value: 'b' }] } },
      'no such field',
    ],
    [{ labelSelector: { matchLabel: { app: 'web' } } }, 'labelSelector.matchLabel'],
    [{ defaultDeleteOptions: { propagationPolicy: 'Orphan' } }, 'defaultDeleteOptions.propagationPolicy'],
    [{ defaultDeleteOptions: { preconditions: { uuid: 'a' } } }, 'preconditions.uuid'],
    [{ flowControlBurst: 3 }, 'nothing without flowControlQPS'],
    [{ evictBurst: 0 }, 'evictBurst'],
    [[], 'an object'],
    ['text', 'an object'],
  ])('%o is refused', (value, words) => {
    expect(refusal(value)).toContain(words)
  })
})
