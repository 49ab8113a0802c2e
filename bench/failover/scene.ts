import { kill } from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pod } from '../../src/kube/resources.ts'
import { type BenchContext, demand } from '../bench.ts'
import { type Prober, startProber } from '../node/probe.ts'
import { pidInPod } from '../node/process.ts'
import { counterPort } from '../objects.ts'
import { clientNode } from '../observe/scene.ts'

/** A client of one pod's own address, beside the client of the Service. */
export const clientOf = (context: BenchContext, pod: Pod): Promise<Prober> =>
  startProber(
    demand(context.playground, 'a playground'),
    clientNode(context),
    demand(pod.status?.podIP, 'an address'),
    counterPort,
    context.signal,
  )

/** Kills the counter of a pod at once. @returns Unix ms of the signal */
export async function killCounter(context: BenchContext, pod: Pod): Promise<number> {
  const pid = await counterOf(pod)
  const at = context.clock.now()
  kill(pid, 'SIGKILL')
  return at
}

/** A client may see an answer of a counter that was resumed, for so long at most, ms. */
const stopAgainMs = 20

/**
 * Stops the counter of a pod at once, and again until `end`: the end of a checkpoint resumes a process that was stopped during it.
 *
 * @returns Unix ms of the first signal
 */
export async function hangCounter(
  context: BenchContext,
  pod: Pod,
): Promise<{ readonly at: number; end(): void }> {
  const pid = await counterOf(pod)
  const at = context.clock.now()
  kill(pid, 'SIGSTOP')
  const again = setInterval(() => {
    try {
      kill(pid, 'SIGSTOP')
    } catch {
      // The agent has ended it.
      clearInterval(again)
    }
  }, stopAgainMs)
  return { at, end: () => clearInterval(again) }
}

async function counterOf(pod: Pod): Promise<number> {
  const pid = demand(await pidInPod(pod.metadata.uid, 'counter'), 'the process of the counter')
  // A random delay, so that the signal falls at any phase of the kubelet's relist (once a second) and of the checkpoint
  // interval.
  await sleep(Math.random() * 1_000)
  return pid
}
