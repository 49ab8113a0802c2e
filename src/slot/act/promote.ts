import type { BroughtBack } from '../../api/pod-contract.ts'
import type { SlotActionOf } from '../decide/actions.ts'
import type { SlotContext } from './context.ts'
import type { Outcome } from './outcome.ts'
import { requireNotResumed } from './still-not-resumed.ts'
import { requireStanding } from './still-standing.ts'
import { requireUnready } from './still-unready.ts'
import { takeOver } from './take-over.ts'
import { writeLease } from './write-lease.ts'

export type Promote = SlotActionOf<'promote'>

/** Time for the agent, thaw and probes, whatever the size. */
const graceMs = 10_000
/** Slowest restore that is allowed for, bytes per ms. */
const slowest = 100_000
/** Time for containers to start, or for a fetch of the memory to begin. */
const startMs = 30_000

/** Moves a slot with its memory to another pod: once the Lease names the pod, the pod's agent puts the app on stage. */
export function promote(context: SlotContext, action: Promote): Promise<Outcome> {
  const { pod, role, lease, wake } = action
  return takeOver(context, action, {
    ...{ pod, to: 'primary', role, wake },
    swap: async () => {
      if (action.version === undefined) return
      if (role.replaces?.reason === 'Unready') await requireUnready(context, role.replaces.name)
      if (action.standing) await requireStanding(context, action.standing)
      if (action.unresumed) await requireNotResumed(context, action.unresumed)
      await writeLease(context, lease, action.version, pod.stage?.restarts ?? 0)
    },
    bring: async () => {
      const stage = await context.awaitServing({
        namespace: lease.namespace,
        name: pod.name,
        uid: pod.uid,
        timeoutMs: patienceMs(action),
        signal: context.signal,
      })
      if (stage.type === 'failed') return stage
      const { ip, resourceVersion, memory } = stage
      return { type: 'brought', ip, resourceVersion, action: withMemory(action, memory) }
    },
  })
}

/** Returns how long to wait for a called pod. It grows only with the bytes still to be moved and restored. */
export function patienceMs({ origin, wake }: Pick<Promote, 'origin' | 'wake'>): number {
  // Nothing is known about the memory: it may have to be transferred.
  const { bytes, moves, restores } = origin ?? { bytes: 0, moves: true, restores: true }
  const work = Number(moves) + Number(restores)
  return graceMs + (wake || moves ? startMs : 0) + (work * bytes) / slowest
}

/** Corrects the origin by the agent's own record of the restore: the report behind the decision is some seconds old. */
export function withMemory(action: Promote, memory: BroughtBack | undefined): Promote {
  const { origin } = action
  if (origin === undefined || memory === undefined) return action
  const newer = Date.parse(memory.takenAt) - origin.takenAtSource
  return Number.isNaN(newer)
    ? action
    : { ...action, origin: { ...origin, generation: memory.generation, takenAt: origin.takenAt + newer } }
}
