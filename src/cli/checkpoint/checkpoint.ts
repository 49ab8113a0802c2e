import type { BackupPodSet } from '../../api/backuppodset.ts'
import { annotations } from '../../api/labels.ts'
import type { SlotReport } from '../../api/node-report.ts'
import { slotLeaseName } from '../../api/numbered-slot.ts'
import type { SlotStatus } from '../../api/slot-status.ts'
import { type Pod, pods } from '../../kube/resources.ts'
import { CliError, exitCodes } from '../failure.ts'
import { findSet } from '../find-set.ts'
import { answer } from '../output/answer.ts'
import { bytes, duration } from '../output/quantities.ts'
import type { Session } from '../session.ts'
import { type FollowedWorld, followWorld, type World } from '../world.ts'
import { slotsOf } from './slots.ts'

export interface CheckpointOptions {
  /** Slot number; absent: all slots. */
  readonly slot?: number
  readonly wait?: boolean
  /** Seconds. */
  readonly timeout: number
}

/** A generation that was saved on request. */
export interface Saved {
  readonly slot: number
  readonly pod: string
  readonly node: string
  readonly generation: number
  /** Time during which the primary was stopped. */
  readonly frozenSeconds?: number
  readonly bytes?: number
  /**
   * Nodes that keep this generation or a newer one, and how it is usable there. With `wait` at least one entry is
   * usable.
   */
  readonly holders: readonly { readonly node: string; readonly usable?: NonNullable<SlotReport['usable']> }[]
  /** From the request until all this was known. */
  readonly seconds: number
}

/**
 * Saves the memory of a set's primaries now, and prints the results.
 *
 * @throws CliError, KubeError.
 */
export async function checkpoint(session: Session, name: string, options: CheckpointOptions): Promise<void> {
  const { namespace } = session
  const set = await findSet(session, name)
  const slots = slotsOf(set, options.slot)
  const saved = await followWorld(session, { namespace, set: name }, world =>
    Promise.all(
      slots.map(slot =>
        saveNow(session, world, set, slot, {
          wait: options.wait === true,
          timeoutMs: options.timeout * 1000,
        }),
      ),
    ),
  )
  answer(session, 'Checkpoints', { checkpoints: saved }, () => saved.map(savedLine).join('\n'))
}

export function savedLine({
  slot,
  pod,
  generation,
  frozenSeconds,
  bytes: size,
  holders,
  seconds,
}: Saved): string {
  const facts = [
    ...(size === undefined ? [] : [bytes(size)]),
    ...(frozenSeconds === undefined ? [] : [`stopped for ${duration(frozenSeconds)}`]),
    `after ${duration(seconds)}`,
  ].join(', ')
  const usable = holders.filter(holder => holder.usable !== undefined)
  const where =
    usable.length > 0
      ? `usable on ${usable.map(it => `${it.node} (${it.usable})`).join(', ')}`
      : 'not usable elsewhere yet; --wait waits for that'
  return `slot ${slot}: generation ${generation} of ${pod}, ${facts}; ${where}`
}

interface SaveOptions {
  /** Wait until a successor could continue with the generation. */
  readonly wait: boolean
  readonly timeoutMs: number
}

/** Requests a checkpoint of one slot, and waits for the answer. @throws CliError, KubeError. */
export async function saveNow(
  session: Session,
  world: FollowedWorld,
  set: BackupPodSet,
  {
    slot,
    pod: name,
    protection,
    pipelineSeconds,
  }: Pick<SlotStatus, 'slot' | 'pod' | 'protection' | 'pipelineSeconds'>,
  { wait, timeoutMs }: SaveOptions,
): Promise<Saved> {
  const { api, call, clock, random, namespace, progress } = session
  const key = { namespace, set: set.metadata.name, slot }
  const primary = ableToSave(world.now, name, key)
  const { uid } = primary.metadata
  const askedAt = clock.monotonic()
  const request = `${new Date(clock.now()).toISOString()}-${Buffer.from(random.bytes(3)).toString('hex')}`
  await api.patch(
    pods,
    { namespace, name },
    {
      type: 'merge',
      body: { metadata: { uid, annotations: { [annotations.checkpointRequested]: request } } },
    },
    call,
  )
  const mustBeThere = (now: World) => {
    const pod = now.pods.find(it => it.metadata.uid === uid)
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined)
      throw new CliError(`slot ${slot}: its primary ${name} was lost before it was saved`, {
        advice: `run \`kubectl understudy status ${set.metadata.name}\` to see what happened to it`,
      })
  }
  const answered = await progress.step(`slot ${slot}: save ${name}`, async step => {
    if (pipelineSeconds !== undefined) step.expect(pipelineSeconds)
    const report = await world.until(
      now => {
        mustBeThere(now)
        return reportsOf(now, key).find(
          ({ role, answeredRequest }) => role === 'source' && answeredRequest === request,
        )
      },
      timeoutMs,
      () =>
        late(
          `slot ${slot}: ${name} has not been saved`,
          reportsOf(world.now, key).find(it => it.role === 'source'),
        ),
    )
    step.detail(`generation ${report.generation}`)
    return report
  })
  const having = (now: World) =>
    reportsOf(now, key).filter(
      ({ role, incarnation, generation }) =>
        role === 'holder' && incarnation === answered.incarnation && generation >= answered.generation,
    )
  if (wait)
    await progress.step(`slot ${slot}: wait until a pod could resume with it`, async step => {
      const holder = await world.until(
        now =>
          having(now).find(({ usable }) => ranks.indexOf(usable) >= Math.max(ranks.indexOf(protection), 0)),
        Math.max(timeoutMs - (clock.monotonic() - askedAt), 0),
        () =>
          late(
            `slot ${slot}: generation ${answered.generation} is saved, but no pod could resume with it`,
            reportsOf(world.now, key).find(it => it.role === 'holder' && it.reason !== undefined),
          ),
      )
      step.detail(`${holder.node} (${holder.usable})`)
    })
  return {
    slot,
    pod: name,
    node: answered.node,
    generation: answered.generation,
    ...(answered.frozenSeconds === undefined ? {} : { frozenSeconds: answered.frozenSeconds }),
    ...(answered.bytes === undefined ? {} : { bytes: answered.bytes }),
    holders: having(world.now).map(({ node, usable }) => ({
      node,
      ...(usable === undefined ? {} : { usable }),
    })),
    seconds: (clock.monotonic() - askedAt) / 1000,
  }
}

/**
 * Ways to continue with a memory, the best one last. The new generation must allow at least the way that was possible
 * before: while it is only fetched for a cold backup, the hot backup would continue with the previous generation.
 */
const ranks: readonly (SlotStatus['protection'] | SlotReport['usable'])[] = ['Cold', 'Staged', 'Frozen']

interface Key {
  readonly namespace: string
  readonly set: string
  readonly slot: number
}

const reportsOf = ({ reports = [] }: World, key: Key): readonly (SlotReport & { readonly node: string })[] =>
  reports.flatMap(({ metadata, status }) =>
    (status?.slots ?? [])
      .filter(it => it.namespace === key.namespace && it.name === slotLeaseName(key.set, key.slot))
      .map(it => ({ ...it, node: metadata.name })),
  )

/** Returns the primary, if it can be saved. @throws CliError. */
function ableToSave(world: World, name: string, key: Key): Pod {
  const primary = world.pods.find(({ metadata }) => metadata.name === name)
  if (primary === undefined || primary.metadata.deletionTimestamp !== undefined)
    throw new CliError(`slot ${key.slot}: its primary ${name} no longer exists`, {
      advice: `try again: a successor is taking over (\`kubectl understudy status ${key.set} -w\`)`,
    })
  if (world.reports === undefined)
    throw new CliError('you may not watch nodereports, which say whether a checkpoint is complete', {
      advice: 'bind the ClusterRole understudy-view to yourself with a ClusterRoleBinding',
    })
  if (!reportsOf(world, key).some(({ role }) => role === 'source'))
    throw new CliError(`slot ${key.slot}: no agent reports that it saves ${name}`, {
      advice: 'run `kubectl understudy doctor`: it names the problem of the node, and the cure',
    })
  return primary
}

const late = (what: string, report: SlotReport | undefined): CliError =>
  new CliError(`${what} within --timeout`, {
    exitCode: exitCodes.late,
    advice: adviceOn(report),
  })

/** The advice for a request that was not fulfilled in time, from the report of the node in charge. */
export function adviceOn(
  report: Pick<SlotReport, 'reason' | 'message' | 'intervalReason' | 'intervalSeconds'> | undefined,
): string {
  if (report?.reason !== undefined)
    return `${report.reason}: ${report.message ?? 'read the log of the agents'}`
  if (report?.intervalReason === 'FreezeBudget')
    return (
      'FreezeBudget: the primary was stopped for its share of the time, and for one checkpoint beyond that; ' +
      `the next checkpoint is due after ${duration(report.intervalSeconds ?? 0)}: raise checkpoint.maxFreezePercent, or --timeout`
    )
  return 'raise --timeout, or read the log of the agents'
}
