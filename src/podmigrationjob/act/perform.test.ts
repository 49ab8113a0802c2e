import { expect, it } from 'vitest'
import type { PodMigrationJobStatus } from '../../api/pod-migration-job.ts'
import { KubeError } from '../../kube/errors.ts'
import { viewWith } from '../testing/views.ts'
import { argsWith } from '../testing/worlds.ts'
import { perform } from './perform.ts'
import { createRequests } from './requests.ts'
import { createTokens } from './tokens.ts'

it('PJ26: a job for a pod that gives way, and that the API server refuses, ends the other job as Unschedulable, with the reason', async () => {
  const refuse = () => Promise.reject(new KubeError('Forbidden', 'no such right'))
  const clock = { now: () => 0, monotonic: () => 0 }
  const written: PodMigrationJobStatus[] = []
  const performer = {
    api: { get: refuse, create: refuse, patch: refuse, delete: refuse, request: refuse },
    writer: {
      write: (_: unknown, status: PodMigrationJobStatus) => Promise.resolve(void written.push(status)),
      merged: () => [],
      settle: () => Promise.resolve(),
    },
    ...{
      clock,
      evictions: createTokens(clock),
      requests: createRequests(clock),
      noteEviction: () => undefined,
    },
  }
  const victim = { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'a', uid: 'u' }
  const view = viewWith({ mode: 'ReservationFirst' }, { status: { phase: 'Running' } })
  const action = { type: 'preempt', view, victim, ttlMs: 1_000 } as const
  await perform([action], argsWith(), performer, AbortSignal.timeout(1_000))
  expect(written).toMatchObject([
    {
      ...{ phase: 'Failed', reason: 'Unschedulable', message: expect.stringContaining('no such right') },
      conditions: [{ type: 'Preemption', status: 'False' }],
    },
  ])
})
