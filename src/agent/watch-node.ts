/** Checks again and again what the agent's work on its node depends on. */
import { linkedTo } from '../kube/abort.ts'
import { createBackoff } from '../kube/backoff.ts'
import { systemClock as clock } from '../kube/clock.ts'
import { systemRandom as random } from '../kube/random.ts'
import { failedCheck, type Node, recheck } from './node.ts'
import type { Resources } from './resources.ts'
import type { SentinelClient } from './sentinel/client.ts'

type Tellers = Pick<Resources, 'status' | 'log'>

/** Repeats the checks until the node has shown once that it can move memory. */
export async function prove(
  { status, log }: Tellers,
  entered: Pick<Node, 'check'>,
  state: { able: boolean },
  changed: () => void,
  signal: AbortSignal,
): Promise<void> {
  const pauses = createBackoff(recheck, random)
  while (!signal.aborted) {
    try {
      status.checks = await entered.check(signal)
    } catch (error) {
      if (signal.aborted) return
      status.checks = [failedCheck('preflight', error)]
    }
    state.able = status.checks.every(({ ok }) => ok)
    log.info({ able: state.able, checks: status.checks }, 'preflight')
    status.publish()
    changed()
    if (state.able) return
    await clock.sleep(pauses.next(), signal).catch(() => undefined)
  }
}

const sentinelCheckMs = 5_000
const sentinelRounds = 60
/** A sentinel that ends again and again, or cannot be started, must not keep the agent busy. */
const lossBackoff = { initialMs: 50, maxMs: sentinelCheckMs }

/**
 * Ensures that a sentinel runs. Its end costs no memory, but until another one runs, no process is watched, and no heartbeat
 * leaves the node: its primaries stop after two thirds of `nodeTimeout`, and lose their slots after all of it. So the
 * agent does not wait for its next check when the connection ends.
 */
export async function watchSentinel(
  { log }: { readonly log: Pick<Tellers['log'], 'warn' | 'error'> },
  entered: Pick<Node, 'ensureSentinel' | 'presentSentinel'> & {
    readonly sentinel: Pick<SentinelClient, 'lost'>
  },
  state: { sentinel: string },
  changed: () => void,
  signal: AbortSignal,
): Promise<void> {
  let round = 0
  const pauses = createBackoff(lossBackoff)
  const loss = watchLoss(entered.sentinel, signal)
  while (!signal.aborted) {
    const isLost = await loss.within(sentinelCheckMs)
    if (isLost) await clock.sleep(pauses.next(), signal).catch(() => undefined)
    else pauses.reset()
    if (signal.aborted) return
    try {
      // A sentinel of an earlier version is replaced once it guards no pod; this needs no frequent check.
      if (!isLost) round = (round + 1) % sentinelRounds
      const now = round === 0 ? await entered.ensureSentinel(signal) : await entered.presentSentinel(signal)
      if (now === state.sentinel) continue
      log.warn({ before: state.sentinel, now }, 'another sentinel runs, so the agent renews all watches')
      state.sentinel = now
      changed()
    } catch (error) {
      if (!signal.aborted) log.error({ err: error }, 'no sentinel runs')
    }
  }
}

/** Waits for the loss of the connection with one wait at a time: a reaction for each check would stay for as long as it lasts. */
function watchLoss(sentinel: Pick<SentinelClient, 'lost'>, signal: AbortSignal) {
  let isWaiting = false
  let isLost = false
  let wake: () => void = () => undefined
  const wait = () => {
    if (isWaiting) return
    isWaiting = true
    sentinel
      .lost(signal)
      .then(
        () => {
          isLost = true
        },
        () => undefined,
      )
      .finally(() => {
        isWaiting = false
        wake()
      })
  }
  return {
    /** @returns whether it is lost before the time, or the signal, ends the wait */
    async within(ms: number): Promise<boolean> {
      isLost = false
      using over = linkedTo(signal)
      wake = () => over.abort()
      wait()
      await clock.sleep(ms, over.signal).catch(() => undefined)
      return isLost
    },
  }
}
