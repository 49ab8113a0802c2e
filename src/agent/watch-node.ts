/** Checks again and again what the agent's work on its node depends on. */
import { createBackoff } from '../kube/backoff.ts'
import { systemClock as clock } from '../kube/clock.ts'
import { systemRandom as random } from '../kube/random.ts'
import { failedCheck, type Node, recheck } from './node.ts'
import type { Resources } from './resources.ts'

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

/** Ensures that a sentinel runs. Its end costs no memory, but no process is watched until another sentinel runs. */
export async function watchSentinel(
  { log }: Tellers,
  entered: Pick<Node, 'ensureSentinel' | 'presentSentinel'>,
  state: { sentinel: string },
  changed: () => void,
  signal: AbortSignal,
): Promise<void> {
  let round = 0
  while (!signal.aborted) {
    await clock.sleep(sentinelCheckMs, signal).catch(() => undefined)
    if (signal.aborted) return
    try {
      // A sentinel of an earlier version is replaced once it guards no pod; this needs no frequent check.
      round = (round + 1) % sentinelRounds
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
