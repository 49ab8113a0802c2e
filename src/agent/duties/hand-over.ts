import { slotName } from '../../checkpoint/manifest.ts'
import { handoverDeadlineMs, handoverSlackMs } from '../../succession/deadlines.ts'
import { AgentError, isAgentError } from '../errors.ts'
import { saveOnce } from './checkpoint.ts'
import type { DutyOf } from './duty.ts'
import { NotWanted } from './tasks.ts'
import type { Work } from './work.ts'

/**
 * Brings a primary to a stand for the successor that its Lease names, and saves its memory once more: what comes after
 * that moment would be lost. It stands until somebody else holds the slot, or the Lease names no successor any more, or
 * its time is over; in the last two cases it goes on as if nothing had been, in the last one for a while. The sentinel keeps
 * the time, too: once it is said that the primary stands, an operator counts on it, and an agent that ends leaves it standing.
 *
 * @throws AgentError HandoverExpired, and whatever a save throws; the signal's reason.
 */
export async function handOver(work: Work, duty: DutyOf<'handOver'>, signal: AbortSignal): Promise<void> {
  const { sentinel, understudies, store, progress, handoverPauses, clock, log } = work
  const { pod, lease } = duty
  const slot = slotName(lease)
  const { located } = await understudies.enter(pod, signal)
  // What comes later comes sooner while it runs.
  await work.arrivals.whole(pod.uid, signal)
  const deadlineMs = handoverDeadlineMs(store.latest(lease)?.manifest.bytes)
  const name = nameOf(pod)
  let isPromised = false
  const resumeProbes = work.suspendProbes(pod.uid)
  const stoppedAt = clock.monotonic()
  const leftMs = () => Math.max(deadlineMs - (clock.monotonic() - stoppedAt), 0)
  const expired = () => new AgentError('HandoverExpired', `${Math.round(deadlineMs / 1000)} s`)
  // Not within the dump's own stop, which ends with the dump: what stands already it leaves standing.
  const cgroups = located.containers.flatMap(container => container.cgroups)
  try {
    // An agent before this one may have left it standing.
    if (!(await sentinel.keep(name, deadlineMs + handoverSlackMs, signal)))
      await sentinel.stop({ name, deadlineMs: deadlineMs + handoverSlackMs, cgroups })
    const stored = await saveOnce(work, duty, signal, { isFinal: true })
    isPromised = await sentinel.keep(name, leftMs() + handoverSlackMs, signal)
    if (!isPromised) throw expired()
    progress.standing(slot, { seconds: leftMs() / 1000, handover: lease.handovers })
    const generation = stored.manifest.generation
    log.info({ pod: pod.name, slot, generation, successor: lease.handover }, 'stands still for its successor')
    await clock.sleep(leftMs(), signal)
    throw expired()
  } catch (error) {
    if (!signal.aborted) handoverPauses.begin(duty, clock.monotonic() - stoppedAt)
    throw error
  } finally {
    // A stop may be refused, and a continuation be lost: its probes are nobody's but this agent's to resume.
    resumeProbes()
    const endsWithAgent = signal.aborted && !(signal.reason instanceof NotWanted)
    if (!isPromised || !endsWithAgent) await takeBack(work, duty)
  }
}

/** Lets a primary go on that somebody counted on to stand still. */
async function takeBack(work: Work, { pod, lease }: DutyOf<'handOver'>): Promise<void> {
  const slot = slotName(lease)
  work.progress.standing(slot, undefined)
  // Called by its Lease somebody else may run already: who stood still until now is buried. So is who is to end first:
  // what it did in the moment until then would be lost.
  if (work.slotHeldBy(pod.uid) === slot && !work.isToEnd(pod.uid)) await letGo(work, nameOf(pod))
}

/**
 * Lets a primary go on that an agent before this one has left standing, and that is not to be handed over any more. The
 * API server is asked: where another pod is called to its slot it must not run on.
 *
 * @throws KubeError, AgentError SentinelUnavailable, SentinelLost, or the signal's reason.
 */
export async function letEarlierGo(
  work: Pick<Work, 'sentinel' | 'inquiry' | 'log'>,
  { pod, lease }: DutyOf<'guard'>,
  signal: AbortSignal,
): Promise<void> {
  if (lease.handover !== undefined) return
  const name = nameOf(pod)
  if (!(await isThere(work.sentinel, name))) return
  const now = await work.inquiry.lease(lease, signal)
  const isIts = now?.holder.uid === pod.uid && now.life === lease.life && now.ending !== pod.uid
  if (isIts && now.handover === undefined) await letGo(work, name)
}

const isThere = async (sentinel: Pick<Work['sentinel'], 'isDone'>, stop: string): Promise<boolean> => {
  try {
    await sentinel.isDone(stop)
    return true
  } catch (error) {
    if (isAgentError(error, 'SentinelRefused')) return false
    throw error
  }
}

const nameOf = ({ uid }: DutyOf<'handOver'>['pod']): string => `handover-${uid}`

/** What was never stopped need not go on, and what a lost connection had stopped goes on by itself. */
async function letGo({ sentinel, log }: Pick<Work, 'sentinel' | 'log'>, name: string): Promise<void> {
  try {
    await sentinel.continue(name)
  } catch (error) {
    if (!isAgentError(error, 'SentinelRefused', 'SentinelLost', 'SentinelUnavailable')) throw error
    log.info({ stop: name, problem: error.message }, 'nothing is to be continued')
  }
}
