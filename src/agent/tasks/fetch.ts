import { AgentError, isAgentError } from '../../api/agent-errors.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { GenerationStore, Stored } from '../../checkpoint/store.ts'
import { abortAfter } from '../../kube/abort.ts'
import { isNewerTold } from '../../slot/decide/age.ts'
import { restoreDeadlineMs } from '../../slot/decide/deadlines.ts'
import type { TaskOf } from '../decide/task.ts'
import type { Elsewhere } from '../observe/elsewhere.ts'
import { generationsOf, toldOf } from '../observe/generations.ts'
import type { AgentMetrics } from '../report/metrics.ts'
import type { TaskContext } from './task-context.ts'

export interface FetchContext extends Pick<TaskContext, 'peers' | 'announce' | 'clock' | 'log'> {
  readonly store: Pick<GenerationStore, 'list'>
  readonly metrics: Pick<AgentMetrics, 'received'>
}

/** Fetches the memory of a slot to this node while the containers that will get it are starting. */
export async function fetch(
  work: FetchContext,
  { lease, others }: TaskOf<'fetch'>,
  signal: AbortSignal,
): Promise<void> {
  await fetchNewest(work, lease, others, signal)
}

/** The Lease has named this node only just now; the other agent may not have seen that for this time, ms. */
const unknownMs = 3_000

const againMs = 50

/**
 * Fetches the newest generation of a slot from another node, if it is newer than this node's. Tries the next node if
 * one cannot be reached or has nothing to give.
 *
 * @returns undefined if no node has a newer one.
 * @throws AgentError of the last node that was tried, CheckpointError, the signal's reason.
 */
export async function fetchNewest(
  work: FetchContext,
  { namespace, name, incarnation, epoch }: SlotLease,
  others: readonly Elsewhere[],
  signal: AbortSignal,
): Promise<Stored | undefined> {
  const { store, peers, clock, log } = work
  const key = { namespace, name, incarnation }
  const [ours] = generationsOf(store, key)
  const newer = others.filter(other => ours === undefined || isNewerTold(other, toldOf(ours.manifest)))
  let failure: { readonly error: unknown } | undefined
  for (const other of newer) {
    const deadline = clock.monotonic() + unknownMs
    for (;;) {
      // The node reports the generation, so an answer that does not begin soon never comes: the node has lost it, and the pull
      // would wait for a newer one. Once it has begun, the client notices a peer that stops sending.
      const lateMs = restoreDeadlineMs(ours?.manifest.bytes ?? 0)
      const silent = () => new AgentError('PeerSilent', `${other.address}: no answer for ${lateMs} ms`)
      using late = abortAfter(clock, lateMs, silent)
      try {
        const isLate = AbortSignal.any([signal, late.signal])
        const stored = await peers.pull(key, other, epoch, isLate, {
          onAnswer: () => late[Symbol.dispose](),
          atLeast: other,
        })
        work.metrics.received({ bytes: stored.manifest.bytes, pipelineSeconds: stored.pipelineMs / 1000 })
        work.announce(key)
        log.info(
          { slot: slotName(key), from: other.address, generation: stored.manifest.generation },
          'generation fetched',
        )
        return stored
      } catch (error) {
        signal.throwIfAborted()
        failure = { error }
        if (!isAgentError(error, 'PeerRefused') || clock.monotonic() > deadline) break
        await clock.sleep(againMs, signal)
      }
    }
    log.warn({ err: failure.error, slot: slotName(key), from: other.address }, 'cannot fetch a generation')
  }
  if (failure !== undefined) throw failure.error
  return undefined
}
