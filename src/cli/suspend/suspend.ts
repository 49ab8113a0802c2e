import { type BackupPodSet, backupPodSets } from '../../api/backuppodset.ts'
import { type MigratingPod, migratingPods } from '../../api/migrating-pod.ts'
import { conditionTypes, reasons } from '../../api/reasons.ts'
import type { RetainedSlot } from '../../api/slot-status.ts'
import type { Condition } from '../../kube/conditions.ts'
import { isKubeError } from '../../kube/errors.ts'
import type { Resource } from '../../kube/resources.ts'
import { CliError, exitCodes } from '../failure.ts'
import { findSet } from '../find-set.ts'
import { answer } from '../output/answer.ts'
import { ageOf, bytes } from '../output/quantities.ts'
import type { Session } from '../session.ts'
import { type FollowedWorld, followWorld } from '../world.ts'

export interface SuspendOptions {
  /** Seconds. */
  readonly timeout: number
}

/**
 * Suspends a MigratingPod or a set, and waits until its pods have ended with their memory saved.
 *
 * @throws CliError with exit code 4 if a pod still runs then: the operator continues; CliError, KubeError.
 */
export async function suspend(session: Session, name: string, { timeout }: SuspendOptions): Promise<void> {
  const set = await write(session, name, true)
  await follow(session, set, world => untilSuspended(session, world, name, timeout * 1000))
}

/**
 * Resumes a MigratingPod or a set, and waits until its primaries serve.
 *
 * @throws CliError with exit code 4 if they do not serve by then: the operator continues; CliError, KubeError.
 */
export async function resume(session: Session, name: string, { timeout }: SuspendOptions): Promise<void> {
  const set = await write(session, name, false)
  await follow(session, set, world => untilResumed(session, world, name, timeout * 1000))
}

const follow = (
  session: Session,
  { metadata: { name } }: BackupPodSet,
  act: (world: FollowedWorld) => Promise<void>,
) => followWorld(session, { namespace: session.namespace, set: name }, act)

/** Writes `suspend` where the user has written the spec: the operator undoes changes of a MigratingPod's set. */
async function write(session: Session, name: string, value: boolean): Promise<BackupPodSet> {
  const { api, namespace, call } = session
  const pod = await api
    .get<MigratingPod>(migratingPods, { namespace, name }, call)
    .catch((error: unknown) => {
      if (isKubeError(error, 'NotFound')) return undefined
      throw error
    })
  const set = await findSet(session, name)
  if (value && set.spec.paused === true)
    throw new CliError(`${name} is paused: nothing would end`, {
      advice: `run \`kubectl understudy resume ${name}\` first`,
    })
  const spec = { suspend: value, ...(!value && set.spec.paused === true && { paused: false }) }
  const patch = <O extends MigratingPod | BackupPodSet>(resource: Resource<O>, { metadata: { uid } }: O) =>
    api.patch(resource, { namespace, name }, { type: 'merge', body: { metadata: { uid }, spec } }, call)
  if (pod === undefined) await patch(backupPodSets, set)
  else await patch(migratingPods, pod)
  return set
}

/** Returns the set once it has the wish, with the condition as the operator has written it for that. */
function wordOf(world: FollowedWorld['now'], name: string, value: boolean, type: string) {
  const set = world.sets.find(({ metadata }) => metadata.name === name)
  if (set === undefined || (set.spec.suspend ?? false) !== value) return undefined
  const word = set.status?.conditions?.find(
    each => each.type === type && each.observedGeneration === set.metadata.generation,
  )
  return word && { set, word }
}

export async function untilSuspended(
  session: Session,
  world: FollowedWorld,
  name: string,
  timeoutMs: number,
): Promise<void> {
  const last = await until(session, world, { name, value: true, type: conditionTypes.suspended, timeoutMs })
  const kept = last.set.status?.retainedSlots?.filter(({ until: end }) => end === undefined) ?? []
  tell(session, { name, suspended: true, slots: kept, reason: last.word.reason }, [
    `${name} is suspended: ${last.word.message}`,
    ...kept.map(slot => `  ${keptLine(slot, session.clock.now())}`),
    `  → to continue: kubectl understudy resume ${name}`,
  ])
}

export async function untilResumed(
  session: Session,
  world: FollowedWorld,
  name: string,
  timeoutMs: number,
): Promise<void> {
  const { set } = await until(session, world, { name, value: false, type: conditionTypes.ready, timeoutMs })
  const slots = set.status?.slots ?? []
  tell(session, { name, suspended: false, slots }, [
    `${name} runs again`,
    ...slots.map(({ slot, pod, node }) => `  slot ${slot}: ${pod} on ${node ?? 'no node'}`),
  ])
}

interface Goal {
  readonly name: string
  readonly value: boolean
  /** Type of the condition that is to be True. */
  readonly type: string
  readonly timeoutMs: number
}

async function until({ progress }: Session, world: FollowedWorld, { name, value, type, timeoutMs }: Goal) {
  let seen: Condition | undefined
  return progress.step(value ? `suspend ${name}` : `resume ${name}`, step =>
    world.until(
      now => {
        const found = wordOf(now, name, value, type)
        seen = found?.word
        if (seen !== undefined) step.detail(seen.message)
        return found?.word.status === 'True' ? found : undefined
      },
      timeoutMs,
      () => late(name, value, seen),
    ),
  )
}

function late(name: string, value: boolean, word: Condition | undefined): CliError {
  const why = word === undefined ? 'the operator has not seen it' : `${word.reason}: ${word.message}`
  const isBusy = word !== undefined && [reasons.saving, reasons.suspending].some(each => each === word.reason)
  const patience = isBusy ? 'it takes longer' : 'it is suspended as soon as that is possible'
  return new CliError(`${name} is not ${value ? 'suspended' : 'ready'} within --timeout: ${why}`, {
    advice: value
      ? `nothing is lost: ${patience}; \`kubectl understudy resume ${name}\` takes it back`
      : `the operator continues; \`kubectl understudy status ${name}\` shows what it waits for`,
    exitCode: exitCodes.late,
  })
}

/** `slot 0: generation 14, 3m old, 3.1 MB, on n1, n2`. */
export function keptLine(slot: RetainedSlot, now: number): string {
  const { generation, savedAt, bytes: size, keptOn, unsureOn = [] } = slot
  const old = ageOf(savedAt, now)
  const words = [
    `generation ${generation}`,
    ...(old === '' ? [] : [`${old} old`]),
    ...(size === undefined ? [] : [bytes(size)]),
    keptOn.length === 0 ? 'on no node' : `on ${keptOn.join(', ')}`,
  ]
  const unsure = unsureOn.length === 0 ? '' : ` (not heard now: ${unsureOn.join(', ')})`
  return `slot ${slot.slot}: ${words.join(', ')}${unsure}`
}

const tell = (session: Session, result: object, lines: readonly string[]): void =>
  answer(session, 'Suspension', result, () => lines.join('\n'))
