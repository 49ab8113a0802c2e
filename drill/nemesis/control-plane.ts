/** Faults of the control plane. Its processes start again by themselves, a second after they have ended. */
import { setTimeout as sleep } from 'node:timers/promises'
import { apiStartMs, grantMs } from '../bounds.ts'
import { allSlots } from '../stage.ts'
import { type Nemesis, nothing, plain } from './nemesis.ts'
import { processesOn, signalAll } from './processes.ts'

const ending = (name: string, proves: string, programs: readonly string[]): Nemesis => ({
  name,
  proves,
  family: 'control-plane',
  aim: async ({ cluster }, random) => {
    const signal = random.of(['SIGKILL', 'SIGTERM'] as const)
    return {
      ...plain,
      target: `${programs.join(' and ')}, ${signal}`,
      // No node can report a copy meanwhile.
      unsaved: allSlots,
      silences: 'Api',
      outageMs: apiStartMs,
      strike: async () => {
        for (const program of programs) signalAll(await processesOn(cluster, 'cp', program), signal)
      },
    }
  },
})

export const restartApi = ending(
  'api-restart',
  'a restart of the API server changes nothing, and a death meanwhile gets its successor by a grant, or afterwards',
  ['kube-apiserver'],
)

export const restartEtcd = ending('etcd-restart', 'the same for etcd', ['etcd'])

export const restartBoth = ending('control-plane-restart', 'the same for both at once', [
  'etcd',
  'kube-apiserver',
])

const awayMs = 60_000
/** The playground starts an API server again a second after its end, and it needs longer than that until it answers. */
const againMs = 250

/** Ends each API server that starts, so that clients are refused; or stops the API server, so that clients wait. */
export const apiAway: Nemesis = {
  name: 'api-away',
  proves:
    'with the API server away for a minute, primaries serve without a fence, and a death is succeeded by grant (--grant)',
  family: 'control-plane',
  // So `api-away+kill` kills an app of which the API server never hears.
  leadMs: 10_000,
  aim: async (stage, random) => {
    const { cluster, recorder } = stage
    const how = random.of(['SIGKILL', 'SIGSTOP'] as const)
    const hasGrants = recorder.set()?.spec.failover?.grant === 'Heir'
    const servers = () => processesOn(cluster, 'cp', 'kube-apiserver')
    const ended = new AbortController()
    let killing = Promise.resolve()
    const keepAway = async () => {
      while (!ended.signal.aborted) {
        signalAll(await servers(), 'SIGKILL')
        await sleep(againMs, undefined, { signal: ended.signal }).catch(nothing)
      }
    }
    return {
      ...plain,
      target: how === 'SIGKILL' ? 'it refuses connections' : 'it does not answer',
      unsaved: allSlots,
      outageMs: hasGrants ? grantMs : awayMs + apiStartMs,
      fencedMs: 0,
      holdMs: awayMs,
      strike: async () => {
        if (how === 'SIGSTOP') signalAll(await servers(), 'SIGSTOP')
        else killing = keepAway()
      },
      async heal() {
        ended.abort()
        await killing
        if (how === 'SIGSTOP') signalAll(await servers(), 'SIGCONT')
      },
    }
  },
}
