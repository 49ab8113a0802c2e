import { describe, expect, it } from 'vitest'
import type { PodMigrationJobStatus } from '../../api/pod-migration-job.ts'
import { viewWith } from '../testing/views.ts'
import { argsWith, podWith, worldOf } from '../testing/worlds.ts'
import { initiatorOf } from './evict-directly.ts'
import { decide } from './next.ts'
import type { EvictionRequest } from './view.ts'

const now = Date.UTC(2030, 0, 1, 12)
const at = (ms: number) => new Date(now + ms).toISOString()
const ours = initiatorOf({ uid: 'job-uid' })

interface Given {
  readonly by?: string | undefined
  readonly eviction?: EvictionRequest
  readonly startedMs?: number
}

function planOf(spec: object, { by, eviction = 'none', startedMs = -1_000 }: Given) {
  const pod = podWith('web-0', { softEvictionBy: by })
  const status: PodMigrationJobStatus = {
    ...{ phase: 'Running', reason: 'EvictionComing', message: 'm', mode: 'EvictDirectly' },
    startTime: at(startedMs),
    source: { uid: pod.uid, nodeName: 'n1' },
    conditions: [
      {
        ...{ type: 'Eviction', status: 'False', reason: 'EvictionComing', message: 'm' },
        ...{ lastTransitionTime: at(0), observedGeneration: 1 },
      },
    ],
  }
  const args = argsWith({ evictionPolicy: 'SoftEviction' })
  const view = viewWith(spec, { pod, status, eviction })
  const plan = decide([view], { world: worldOf([pod]), config: { ok: true, args }, now, tokens: 9 })
  return { status: plan.statuses[0]?.status, actions: plan.actions.map(({ type }) => type) }
}

describe('PJ25: a soft eviction', () => {
  it('is requested until the pod carries the request of this job', () => {
    expect(planOf({}, {}).actions).toEqual(['evict'])
    expect(planOf({}, { by: 'PodMigrationJob/another' }).actions).toEqual(['evict'])
    const asked = planOf({}, { by: ours })
    expect([asked.status?.reason, asked.actions]).toEqual(['SoftEvicting', []])
  })

  it.each([
    ['aborted', { abort: true }, {}],
    ['too late', {}, { startedMs: -600_000 }],
  ] as const)('of a job that is %s is taken back before the job ends', (_, spec, more) => {
    const first = planOf(spec, { by: ours, ...more })
    expect([first.status?.phase, first.actions]).toEqual(['Running', ['withdraw']])
    // The answer is lost: the annotation may still come.
    const unsure = planOf(spec, { eviction: 'unanswered', ...more })
    expect([unsure.status?.phase, unsure.actions]).toEqual(['Running', []])
    expect(planOf(spec, more).status?.phase).toMatch(/Aborted|Failed/)
  })

  it('that another tool has written is not taken back', () => {
    const { status, actions } = planOf({ abort: true }, { by: 'another' })
    expect([status?.phase, actions]).toEqual(['Aborted', []])
  })
})
