import { describe, expect, it, test } from 'vitest'
import { parseArgs } from './migration-controller-args.ts'
import { int32In, parseJob } from './parse-pod-migration-job.ts'
import { migrationPriorityAnnotation, type PodMigrationJobSpec } from './pod-migration-job.ts'

const defaults = { defaultJobTtlMs: 300_000, defaultJobMode: 'EvictDirectly' } as const
const podRef = { namespace: 'shop', name: 'web-0' }
const parse = (spec: object, annotations: Record<string, string> = {}) =>
  parseJob(
    {
      metadata: { name: 'a', uid: 'u', resourceVersion: '1', annotations },
      spec: { podRef, ...spec } satisfies PodMigrationJobSpec,
    },
    defaults,
  )
const refusal = (spec: object) => {
  const parsed = parse(spec)
  return parsed.ok ? undefined : parsed.message
}

const placed = (spec: object) => ({ template: { spec: { template: { spec } } } })

describe('a job', () => {
  it('has the defaults of the configuration, and its own values before them', () => {
    expect(parse({})).toMatchObject({ ok: true, job: { mode: 'EvictDirectly', ttlMs: 300_000 } })
    expect(parse({ ttl: '1m30s', mode: 'Live' })).toMatchObject({ job: { mode: 'Live', ttlMs: 90_000 } })
  })

  it('PJ26: lets other pods give way only if it says so', () => {
    const mode = 'ReservationFirst'
    expect(parse({ mode })).toMatchObject({ ok: true, job: { isPreempting: false } })
    const reservationOptions = { preemptionOptions: {} }
    expect(parse({ mode, reservationOptions })).toMatchObject({ ok: true, job: { isPreempting: true } })
  })

  it('may say to which nodes a pod moves with its memory', () => {
    const reservationOptions = placed({ nodeSelector: { zone: 'a' } })
    expect(parse({ mode: 'Live', reservationOptions })).toMatchObject({
      ok: true,
      job: { placement: { nodeSelector: { zone: 'a' } } },
    })
  })

  it('has a priority among jobs', () => {
    expect(parse({}, { [migrationPriorityAnnotation]: '7' })).toMatchObject({ job: { priority: 7 } })
  })

  test.each([
    [{ mode: 'EvictionDirectly' }, 'set it to EvictDirectly'],
    [{ ttl: 'soon' }, 'spec.ttl'],
    [{ podRef: { name: 'a' } }, 'spec.podRef.namespace'],
    [{ podRef: { ...podRef, kind: 'Node' } }, 'set it to Pod'],
    [{ skipGates: ['LocalStorage'] }, 'spec.skipReason'],
    [{ skipGates: ['Everything'], skipReason: 'a' }, 'names of BarePod'],
    [{ reservationOptions: { preemptionOptions: {} } }, 'leave it out with the mode EvictDirectly'],
    [{ mode: 'Live', reservationOptions: { reservationRef: { name: 'a' } } }, 'with the mode Live'],
    [{ reservationOptions: { reservationRef: { name: 'a' } } }, 'with the mode EvictDirectly'],
    [{ reservationOptions: placed({ nodeSelector: { zone: 'a' } }) }, 'with the mode EvictDirectly'],
    [{ mode: 'Live', reservationOptions: placed({ nodeName: 'a' }) }, 'spec.nodeName'],
    [{ mode: 'Live', reservationOptions: placed({ tolerations: [{ key: 'a' }] }) }, 'spec.tolerations'],
    [{ mode: 'Live', deleteOptions: { gracePeriodSeconds: 1 } }, 'spec.deleteOptions'],
  ])('%o is refused', (spec, words) => {
    expect(refusal(spec)).toContain(words)
  })

  it('PJ05: without a mode it has ReservationFirst, unless the configuration says otherwise', () => {
    const job = { metadata: { name: 'a', uid: 'u', resourceVersion: '1' }, spec: { podRef } }
    const modeWith = (args: object) => {
      const parsed = parseArgs(args)
      return parsed.ok ? parseJob(job, parsed.args) : parsed
    }
    expect(modeWith({})).toMatchObject({ ok: true, job: { mode: 'ReservationFirst' } })
    expect(modeWith({ defaultJobMode: 'Live' })).toMatchObject({ ok: true, job: { mode: 'Live' } })
  })
})

test.each([
  ['0', 0],
  ['-5', -5],
  ['2147483647', 2_147_483_647],
  ['2147483648', 0],
  ['+5', 0],
  ['05', 0],
  ['many', 0],
  [undefined, 0],
])('PJ02: the cost %s is %i', (text, cost) => {
  expect(int32In(text)).toBe(cost)
})
