import type { GoAnswer } from '../../api/grant.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { abortAfter } from '../../kube/abort.ts'
import { messageOf } from '../../kube/errors.ts'
import { grantSpans } from '../../traces/agent.ts'
import type { TaskOf } from '../decide/task.ts'
import type { GrantRecord } from '../observe/snapshot.ts'
import { isClosedSince } from '../state/told-ends.ts'
import { close, endWatched, redirectLastsMs, watchesOf } from './remains.ts'
import type { TaskContext } from './task-context.ts'

type SayGoContext = Pick<
  TaskContext,
  'node' | 'sentinel' | 'deaths' | 'grants' | 'go' | 'trace' | 'clock' | 'log'
>

/** For so long the agent tries to tell that of the heir, ms. After that only the operator calls a successor. */
const patienceMs = 3_000
/** Time for a connection or an answer, ms. */
const answerMs = 1_000
const pauseMs = 100
/** For so long a redirect certainly stays that the sentinel has closed at the death, ms. To renew it takes long, right then. */
const freshMs = redirectLastsMs / 2

/**
 * Tells the agent of the heir that the primary is dead, so that the heir takes the slot. The primary's processes have
 * ended before, and its connections are redirected. The record comes before the message: a later agent must know of it.
 */
export async function sayGo(work: SayGoContext, task: TaskOf<'sayGo'>, signal: AbortSignal): Promise<void> {
  const { deaths, grants, clock, log } = work
  const { pod, heir, request } = task
  // Mostly the sentinel has told all. It is busy at a death, and its answer took up to 40 ms.
  if (!deaths.hasEnded(pod.uid, clock.now() - freshMs)) await endPrimary(work, pod.uid, signal)
  signal.throwIfAborted()
  const { slot, epoch, number, atLeast } = request
  const record = {
    ...{ slot, epoch, number, heir, at: clock.now() },
    ...{ role: 'Said' as const },
    ...(atLeast && { atLeast }),
  }
  await grants.write({ ...record, answer: 'Prepared' })
  // Until a message leaves, the operator is not to wait for an heir that may be out of reach.
  const sent = () => grants.sent({ ...record, answer: 'Unknown' })
  const answer = await deliver(work, task, sent, signal)
  if (answer !== 'Unknown') await grants.write({ ...record, answer })
  const use = { number, answer, heir: heir.name, from: record.at, to: clock.now() }
  work.trace?.(() => grantSpans(work.node, pod, { name: slot.name, epoch }, use))
  log.info(
    { pod: pod.name, slot: slotName(slot), heir: heir.name, number, answer },
    'grant of a dead primary used',
  )
}

/** Ends what still runs of a primary, and closes its redirects. */
async function endPrimary(
  { sentinel, clock }: SayGoContext,
  uid: string,
  signal: AbortSignal,
): Promise<void> {
  const watches = await watchesOf(sentinel, uid, signal)
  await endWatched(sentinel, watches)
  const closedAt = clock.now() - freshMs
  const open = watches.filter(
    ({ grave, diedUnixNs }) => !isClosedSince({ grave, unixNs: diedUnixNs }, closedAt),
  )
  await close(sentinel, open, signal)
}

/** Repeats the message until it has a final answer, or the time is over. */
async function deliver(
  { go, clock, log }: SayGoContext,
  { to, request }: TaskOf<'sayGo'>,
  sent: () => void,
  signal: AbortSignal,
): Promise<Exclude<GrantRecord['answer'], 'Prepared'>> {
  const until = clock.monotonic() + patienceMs
  /** A message without an answer may have arrived, whatever a later one is answered. */
  let isLost = false
  while (!signal.aborted && clock.monotonic() < until) {
    let isSent = false
    try {
      const answer = await within(clock, answerMs, signal, given =>
        go(to, request, given, () => {
          isSent = true
          sent()
        }),
      )
      if (answer !== 'Later') return answer
    } catch (error) {
      isLost ||= isSent
      log.warn({ problem: messageOf(error), to: to.address }, 'cannot reach the agent of the heir')
    }
    await clock.sleep(pauseMs, signal).catch(() => undefined)
  }
  return isLost ? 'Unknown' : 'Undelivered'
}

async function within(
  clock: SayGoContext['clock'],
  ms: number,
  signal: AbortSignal,
  ask: (signal: AbortSignal) => Promise<GoAnswer>,
): Promise<GoAnswer> {
  using late = abortAfter(clock, ms, () => new Error(`no answer within ${ms} ms`))
  return await ask(AbortSignal.any([signal, late.signal]))
}
