/** Candidates for one Lease, each with a connection that can fail, on a clock that the test moves. */
import { vi } from 'vitest'
import { createFakeClock } from '../clock.ts'
import { createElector, type ElectorOptions } from '../election.ts'
import { silentLog } from '../log.ts'
import { seededRandom } from '../random.ts'
import { createMemoryLeases, type Faults } from './memory-leases.ts'

/** A request that never arrives, on a connection that never reports it. */
export const deadLink = (): Faults => ({ send: () => new Promise<void>(() => {}) })

export const makeCandidates = () => {
  const clock = createFakeClock()
  const leases = createMemoryLeases(clock)
  let seed = 0

  /** Starts a candidate; its work runs until the elector stops it. */
  const join = (identity: string, options: Partial<ElectorOptions> = {}) => {
    const faults: Faults = {}
    const end = new AbortController()
    const terms: { stop: AbortSignal; lost: AbortSignal }[] = []
    const status: boolean[] = []
    let stopped = 0
    const elector = createElector({
      api: leases.client(faults),
      namespace: 'ns',
      name: 'x',
      identity,
      clock,
      random: seededRandom(++seed),
      log: silentLog,
      metrics: { leading: (_, leading) => status.push(leading) },
      ...options,
    })
    const work = vi.fn(
      (stop: AbortSignal, lost: AbortSignal): Promise<void> =>
        new Promise(resolve => {
          terms.push({ stop, lost })
          stop.addEventListener('abort', () => resolve())
        }),
    )
    const run = elector.run({ onStarted: work, onStopped: () => void stopped++, signal: end.signal })
    run.catch(() => {})
    return {
      elector,
      faults,
      end,
      run,
      terms,
      work,
      status,
      stopped: () => stopped,
      /** SIGKILL: nothing more reaches the server, and nothing is released. */
      kill() {
        Object.assign(faults, deadLink())
      },
    }
  }
  return { clock, leases, join }
}
