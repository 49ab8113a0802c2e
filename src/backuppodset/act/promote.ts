import { isPodKind, labels } from '../../api/labels.ts'
import type { BroughtBack } from '../../api/stage.ts'
import { retired } from '../memory/stage.ts'
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

/** For any size: agent, thaw and probes. */
const graceMs = 10_000
/** Slowest restore that is waited for, bytes a millisecond. */
const slowest = 100_000
/** For containers that have to be started first, or memory that has to be fetched. */
const startMs = 30_000

/**
 * A slot changes hands. The Lease is the promotion: whoever swaps it has decided, and its agent brings the app on stage.
 * What follows is done by whoever leads when that has happened, so a crash between any two writes loses nothing.
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
      // After the Lease: the pod's node fetches what it does not have while the gate opens.
      const gate = action.wake ? await askGate(context, pod, 'primary') : undefined
      if (gate?.type === 'failed') {
        await deletePod(context, pod, current => current.metadata.labels?.[labels.type] === 'coldbackup')
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
    if (outcome.type === 'done' && outcome.pod !== undefined) context.wrote(outcome.pod)
    // Before anybody decides again: the next pass must not call the same pod.
    if (outcome.type === 'setback') context.failedOnStage(pod.uid, outcome.why)
    return outcome
  }
  return (
    (await context.wakes.start(pod, 'primary', role, recorded, context.finishedLate)) ?? {
      type: 'pending',
      action,
    }
  )
}

/** So long a pod that is called is waited for: it grows with what has still to be moved and brought back, and with nothing else. */
export function patienceMs({ origin, wake }: Pick<Promote, 'origin' | 'wake'>): number {
  // Nothing is known of the memory: it may have to come.
  const { bytes, moves, restores } = origin ?? { bytes: 0, moves: true, restores: true }
  const work = Number(moves) + Number(restores)
  return graceMs + (wake || moves ? startMs : 0) + (work * bytes) / slowest
}

/** The report from which it was decided is some seconds old: the agent knows what it has brought back. */
export function withMemory(action: Promote, memory: BroughtBack | undefined): Promote {
  const { origin } = action
  if (origin === undefined || memory === undefined) return action
  const newer = Date.parse(memory.takenAt) - origin.takenAtSource
  return Number.isNaN(newer)
    ? action
    : { ...action, origin: { ...origin, generation: memory.generation, takenAt: origin.takenAt + newer } }
}

/** The label for those who select by it, the endpoints for those who do not: side by side. */
async function onStage(
  context: ActContext,
  { pod, role, lease }: Promote,
  { ip, resourceVersion }: Extract<ServingResult, { type: 'serving' }>,
  openedGate: string | undefined,
) {
  const { node } = lease
  const kind = context.podOf(pod.uid)?.metadata.labels?.[labels.type]
  const from = isPodKind(kind) ? kind : 'hotbackup'
  const [written, switched] = await Promise.allSettled([
    relabel(context, { ...pod, resourceVersion }, from, 'primary', role, openedGate),
    ip === undefined
      ? undefined
      : switchOver(context, { slot: role.slot, ip, pod: pod.name, uid: pod.uid, node }),
  ])
  if (written.status === 'rejected') throw written.reason
  // The pass that follows compares all endpoints and repeats what failed here.
  if (switched.status === 'rejected')
    context.log.warn({ err: switched.reason }, 'endpoints were not switched')
  return written.value
}

/** A loser keeps its slot and epoch, and its owner; only its kind says that its time is over. */
export const retire = (context: ActContext, { pod }: Extract<Action, { type: 'retire' }>) =>
  patchPod(context, pod, current => current.metadata.labels?.[labels.type] === 'primary', {
    labels: { [labels.type]: retired },
  })
