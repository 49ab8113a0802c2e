import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ClonePod, ClonePodStatus } from '../api/clone-pod.ts'
import type { MigratingPod, MigratingPodStatus } from '../api/migrating-pod.ts'
import { parseClonePod } from '../api/parse-clone-pod.ts'
import { comeBefore, planOf } from './decide.ts'
import type { CloneView, SourceFact, TargetFact } from './view.ts'

const start = Date.parse('2030-01-01T00:00:00Z')
const at = (seconds: number): number => start + seconds * 1000
const meta = (name: string) => ({
  ...{ name, namespace: 'shop', uid: `uid-of-${name}`, resourceVersion: '7' },
  creationTimestamp: '2030-01-01T00:00:00Z',
})
const template = { spec: { containers: [{ name: 'app', image: 'app' }] } }
const clonePod = (
  status?: ClonePodStatus,
  spec: Partial<ClonePod['spec']> = {},
  name = 'copy',
): ClonePod => ({
  metadata: meta(name),
  spec: { source: { name: 'web-0' }, ...spec },
  ...(status && { status }),
})
const found: SourceFact = {
  type: 'found',
  uid: 'a',
  node: 'n1',
  owner: { template, checkpoint: { interval: '1s' } },
}
const word = (type: string, status: 'True' | 'False' | 'Unknown', reason = 'Why', message = 'so') => ({
  ...{ type, status, reason, message, lastTransitionTime: '2030-01-01T00:00:00Z', observedGeneration: 1 },
})
const made = (status?: MigratingPodStatus): MigratingPod => ({
  metadata: meta('copy'),
  spec: { template, clonePod: 'web-0' },
  ...(status && { status }),
})
const ours = (status?: MigratingPodStatus, isReleased = false): TargetFact => ({
  ...{ type: 'ours', pod: made(status), isReleased },
})
const serves: MigratingPodStatus = {
  ...{ state: 'Running', activePod: 'copy-0', node: 'n2' },
  conditions: [word('Cloned', 'True'), word('Ready', 'True')],
}
const view = (over: Partial<CloneView> = {}, object = clonePod()): CloneView => ({
  ...{ object, parsed: parseClonePod(object), source: found, target: { type: 'absent' }, before: 0 },
  ...over,
})
const outcome = ({ status }: { readonly status: ClonePodStatus }) => [
  status.phase,
  status.conditions?.[0]?.status,
  status.conditions?.[0]?.reason,
]

describe('MP-28: a ClonePod', () => {
  it('makes a MigratingPod with the template of its source, and says whose memory it has', () => {
    const { action, status } = planOf(view(), at(1))
    expect(action).toEqual({
      type: 'create',
      spec: { template, clonePod: 'web-0', checkpoint: { interval: '1s' } },
    })
    expect(status).toMatchObject({ phase: 'Cloning', source: { uid: 'a', node: 'n1' } })
  })

  it.each([
    ['its source is unknown', { source: { type: 'absent' } }, 'SourceNotFound'],
    ['its source has no memory', { source: { type: 'unsaved', why: 'no' } }, 'NoMemory'],
    ['its name is taken', { target: { type: 'taken', owner: 'a user' } }, 'NameTaken'],
    ['one of its name is being deleted', { target: { type: 'ending' } }, 'NameTaken'],
    ['others come first', { before: 4 }, 'WaitsForTurn'],
    ['the API server refuses the MigratingPod', { refused: 'quota' }, 'Refused'],
  ] as const)('waits while %s, and fails with that after its time', (_, over, reason) => {
    const plan = planOf(view(over), at(1))
    expect([plan.action.type, ...outcome(plan)]).toEqual(['none', 'Pending', 'Unknown', reason])
    expect(plan.requeueAfterMs).toBeGreaterThan(0)
    const late = planOf(view(over), at(900))
    expect([late.action.type, ...outcome(late)]).toEqual(['none', 'Failed', 'False', 'DeadlineExceeded'])
  })

  it('decides nothing before it knows the MigratingPods', () => {
    for (const object of [clonePod(), clonePod({ phase: 'Cloning', target: { name: 'copy', uid: 'x' } })])
      expect(planOf(view({ target: { type: 'unknown' } }, object), at(5_000))).toMatchObject({
        action: { type: 'none' },
        status: object.status ?? {},
      })
  })

  it('fails at once if its source has another uid than asked for', () => {
    const object = clonePod(undefined, { source: { name: 'web-0', uid: 'b' } })
    expect(outcome(planOf(view({}, object), at(1)))).toEqual(['Failed', 'False', 'SourceReplaced'])
  })

  it('repeats what the MigratingPod waits for', () => {
    const target = ours({
      conditions: [word('Cloned', 'False', 'Cloning', 'n1 copies'), word('Ready', 'Unknown')],
    })
    const { action, status } = planOf(view({ target }), at(1))
    expect(action.type).toBe('none')
    expect(status).toMatchObject({
      ...{ phase: 'Cloning', source: { uid: 'a' }, target: { name: 'copy', uid: 'uid-of-copy' } },
      conditions: [{ status: 'Unknown', reason: 'Cloning', message: 'n1 copies' }],
    })
  })

  it('releases the copy that serves before it says so', () => {
    const { action, status } = planOf(view({ target: ours(serves) }), at(1))
    expect(action.type).toBe('release')
    expect(status).toMatchObject({
      ...{ phase: 'Succeeded', endedAt: '2030-01-01T00:00:01Z', target: { pod: 'copy-0', node: 'n2' } },
      conditions: [{ status: 'True', reason: 'Cloned' }],
    })
    expect(planOf(view({ target: ours(serves, true) }), at(1)).action.type).toBe('none')
    const refused = planOf(view({ target: ours(serves), refused: 'no' }), at(1))
    expect(outcome(refused)).toEqual(['Cloning', 'Unknown', 'Refused'])
  })

  it('fails when the MigratingPod was deleted, and makes no other one', () => {
    const object = clonePod({ phase: 'Cloning', target: { name: 'copy', uid: 'uid-of-copy' } })
    const plan = planOf(view({}, object), at(1))
    expect([plan.action.type, ...outcome(plan)]).toEqual(['none', 'Failed', 'False', 'TargetDeleted'])
  })

  it.each([
    ['deletes a copy that has never served', { state: 'Creating' }, 'is deleted', 'delete'],
    ['keeps one that may have served', { state: 'Running', activePod: 'copy-0' }, 'stays', 'release'],
    ['keeps one that moves', { state: 'Migrating', activePod: 'copy-0' }, 'stays', 'release'],
  ] as const)('%s in its time, once its status says why', (_, status, words, next) => {
    const target = ours(status)
    const late = planOf(view({ target }), at(900))
    expect([late.action.type, ...outcome(late)]).toEqual(['none', 'Failed', 'False', 'DeadlineExceeded'])
    expect(late.status.conditions?.[0]?.message).toContain(words)
    expect(planOf(view({ target }, clonePod(late.status)), at(901)).action.type).toBe(next)
  })

  it.each(['Succeeded', 'Failed'] as const)(
    'that has %s is collected after its time, and does nothing else',
    phase => {
      const object = clonePod({ phase, endedAt: '2030-01-01T00:00:00Z' }, { ttlSecondsAfterFinished: 60 })
      const plan = (seconds: number) => planOf(view({ target: ours(serves, true) }, object), at(seconds))
      expect(plan(59)).toEqual({ action: { type: 'none' }, status: object.status, requeueAfterMs: 1_000 })
      expect(plan(60).action.type).toBe('collect')
      expect(planOf(view({ target: ours(serves) }, object), at(99)).action.type).toBe('release')
    },
  )

  it('that cannot be read fails', () => {
    const object = clonePod(undefined, {}, 'x'.repeat(60))
    expect(outcome(planOf(view({}, object), at(1)))).toEqual(['Failed', 'False', 'InvalidValue'])
  })
})

describe('MP-28: the turn of ClonePods', () => {
  it('is that of the oldest, and of those under way', () => {
    const phases = fc.constantFrom(undefined, 'Pending', 'Cloning', 'Succeeded', 'Failed')
    fc.assert(
      fc.property(fc.array(phases, { maxLength: 30 }), all => {
        const objects = all.map((phase, i) =>
          clonePod(phase && { phase }, {}, `c${String(i).padStart(2, '0')}`),
        )
        const under = objects.filter(({ status }) => status?.phase === 'Cloning').length
        const waiting = objects.filter(({ status }) => (status?.phase ?? 'Pending') === 'Pending')
        const begin = waiting.filter(each => comeBefore(each, objects) < 4)
        expect(begin.map(({ metadata }) => metadata.name)).toEqual(
          waiting.slice(0, Math.max(0, 4 - under)).map(({ metadata }) => metadata.name),
        )
      }),
    )
  })
})
