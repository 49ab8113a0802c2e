import type { GoAnswer } from '../../api/grant.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { messageOf } from '../../kube/errors.ts'
import { grantSpans } from '../../traces/agent.ts'
import type { TaskOf } from '../decide/task.ts'
import type { GrantRecord } from '../observe/snapshot.ts'
import { close, endWatched, isClosedSince, redirectLastsMs, watchesOf } from './remains.ts'
import type { TaskContext } from './task-context.ts'

type SayGoContext = Pick<TaskContext, 'node' | 'sentinel' | 'grants' | 'go' | 'trace' | 'clock' | 'log'>

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
  const { sentinel, grants, clock, log } = work
  const { pod, heir, request } = task
  const watches = await watchesOf(sentinel, pod.uid, signal)
  await endWatched(sentinel, watches)
  const closedAt = clock.now() - freshMs
  await close(
    sentinel,
    watches.filter(watch => !isClosedSince(watch, closedAt)),
    signal,
  )
  signal.throwIfAborted()
  const { slot, epoch, number, atLeast } = request
  const record = {
    ...{ slot, epoch, number, heir, at: clock.now() },
    ...{ role: 'Said' as const },
    ...(atLeast && { atLeast }),
  }
  await grants.write({ ...record, answer: 'Unknown' })
  const answer = await deliver(work, task, signal)
  if (answer !== 'Unknown') await grants.write({ ...record, answer })
  const use = { number, answer, heir: heir.name, from: record.at, to: clock.now() }
  work.trace?.(() => grantSpans(work.node, pod, { name: slot.name, epoch }, use))
  log.info(
    { pod: pod.name, slot: slotName(slot), heir: heir.name, number, answer },
    'grant of a dead primary used',
  )
}

/** Repeats the message until it has a final answer, or the time is over. */
async function deliver(
  { go, clock, log }: SayGoContext,
  { to, request }: TaskOf<'sayGo'>,
  signal: AbortSignal,
): Promise<GrantRecord['answer']> {
  const until = clock.monotonic() + patienceMs
  /** A message without an answer may have arrived, whatever a later one is answered. */
  let isLost = false
  while (!signal.aborted && clock.monotonic() < until) {
    let isSent = false
    try {
      const answer = await within(clock, answerMs, signal, given =>
        go(to, request, given, () => {
          isSent = true
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
  const late = new AbortController()
  const over = new AbortController()
  clock.sleep(ms, over.signal).then(
    () => late.abort(new Error(`no answer within ${ms} ms`)),
    () => undefined,
  )
  try {
    return await ask(AbortSignal.any([signal, late.signal]))
  } finally {
    over.abort()
  }
}
