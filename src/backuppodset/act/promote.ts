import { isPodKind } from '../../api/labels.ts'
import type { BroughtBack } from '../../api/pod-contract.ts'
import { kindLabelOf, kindLabels, retired } from '../../api/pod-kind.ts'
import { writeLease } from '../memory/write-lease.ts'
import type { Action } from '../plan.ts'
import { switchOver } from '../services/write.ts'
import { askGate } from './ask-gate.ts'
import type { ServingResult } from './await-serving.ts'
import type { ActContext } from './context.ts'
import type { Outcome, Phases } from './outcome.ts'
import { relabel } from './relabel.ts'
import { requireStanding } from './still-standing.ts'
import { requireUnready } from './still-unready.ts'
import { deletePod, patchPod } from './write-pod.ts'

export type Promote = Extract<Action, { type: 'promote' }>

/** Time for the agent, thaw and probes, whatever the size. */
const graceMs = 10_000
/** Slowest restore that is allowed for, bytes per ms. */
const slowest = 100_000
/** Time for containers to start, or for a fetch of the memory to begin. */
const startMs = 30_000

/**
 * Moves a slot to another pod. The swap of the Lease is the decision; from then on the pod's agent puts the app on
 * stage. The current leader does the later steps, so a crash between any two writes loses nothing.
 */
export async function promote(context: ActContext, action: Promote): Promise<Outcome> {
  const { pod, role, lease } = action
  const phases: Record<string, number> = {}
  const done = (phase: keyof Phases) => {
    phases[phase] = context.monotonic()
  }
  const promotion = async (): Promise<Outcome> => {
    try {
      if (action.version !== undefined) {
        if (role.replaces?.reason === 'Unready') await requireUnready(context, role.replaces.name)
        if (action.standing) await requireStanding(context, action.standing)
        await writeLease(context, lease, action.version, pod.stage?.restarts ?? 0)
      }
      done('lease')
      // After the Lease: the pod's node can fetch missing data while the gate opens.
      const gate = action.wake ? await askGate(context, pod, 'primary') : undefined
      if (gate?.type === 'failed') {
        await deletePod(context, pod, current => kindLabelOf(current) === 'coldbackup')
        return { type: 'spent', action, why: gate.why }
      }
      if (gate !== undefined) done('woken')
      const stage = await context.awaitServing({
        namespace: lease.namespace,
        name: pod.name,
        uid: pod.uid,
        timeoutMs: patienceMs(action),
        signal: context.signal,
      })
      if (stage.type === 'failed') return { type: 'setback', action, why: stage.why }
      done('serving')
      const written = await onStage(context, action, stage, gate?.openedGate)
      done('published')
      return { type: 'done', action: withMemory(action, stage.memory), pod: written, phases }
    } catch (error) {
      return { type: 'failed', action, error }
    }
  }
  const recorded = async () => {
    const outcome = await promotion()
    // Before the next decision: the next pass must not call the same pod.
    if (outcome.type === 'setback') context.failedOnStage(pod.uid, outcome.why)
    return outcome
  }
  return (
    (await context.inFlightPromotions.start(pod, 'primary', role, recorded, context.finishedLate)) ?? {
      type: 'pending',
      action,
    }
  )
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

/** Patches the label (for Services that select by it) and the EndpointSlices (ours) in parallel. */
async function onStage(
  context: ActContext,
  { pod, role, lease }: Promote,
  { ip, resourceVersion }: Extract<ServingResult, { type: 'serving' }>,
  openedGate: string | undefined,
) {
  const { node } = lease
  const kind = kindLabelOf(context.podOf(pod.uid))
  const from = isPodKind(kind) ? kind : 'hotbackup'
  const [written, switched] = await Promise.allSettled([
    relabel(context, { ...pod, resourceVersion }, from, 'primary', role, openedGate),
    ip === undefined
      ? undefined
      : switchOver(context, { slot: role.slot, ip, pod: pod.name, uid: pod.uid, node }),
  ])
  if (written.status === 'rejected') throw written.reason
  // The next pass compares all endpoints and retries this.
  if (switched.status === 'rejected')
    context.log.warn({ err: switched.reason }, 'cannot switch the endpoints')
  return written.value
}

/** Marks a former primary as retired. It keeps its slot, epoch and owner; only its kind changes. */
export const retire = (context: ActContext, { pod }: Extract<Action, { type: 'retire' }>) =>
  patchPod(context, pod, current => kindLabelOf(current) === 'primary', {
    labels: kindLabels(retired),
  })
