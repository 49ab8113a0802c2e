/** Receives one generation: it counts only when the store has checked and committed it as a whole. */

import { AgentError } from '../../api/agent-errors.ts'
import { isSameSlot, type SlotKey } from '../../api/slot-key.ts'
import { CheckpointError, isCheckpointError } from '../../checkpoint/errors.ts'
import { isNewer, type Manifest } from '../../checkpoint/manifest.ts'
import type { Draft, GenerationStore, Stored } from '../../checkpoint/store.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Apply } from './codec.ts'
import {
  formatVersion,
  type GenerationHead,
  type GenerationRequest,
  sameVersion,
  versionOf,
} from './protocol.ts'

export interface ReceivedGeneration {
  readonly stored: Stored
  readonly slot: SlotKey
  readonly delta: boolean
  /** On the wire, before TLS. */
  readonly bytes: number
  /** From the head of the answer until the generation was stored here. */
  readonly ms: number
}

export interface ReceiveOptions {
  readonly request: GenerationRequest
  readonly answer: GenerationHead
  /** Epoch of the slot's Lease: no later one has begun. */
  readonly epoch: number
  /** The newest generation here at the time of the request. */
  readonly ours: Stored | undefined
  /** For messages. */
  readonly peer: string
  readonly store: Pick<GenerationStore, 'latest' | 'begin' | 'retain' | 'budget'>
  readonly apply: Apply
  /** See PeerClientOptions. */
  readonly originFault: (manifest: Manifest) => string | undefined
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Most generations that a holder may have missed; a source takes years to make so many. */
const widestGap = 1_000_000_000

/** Framing and incompressible data may make a stream a little longer than its files. */
const overheadBytes = 16 * 1024 * 1024

/** @throws AgentError PeerMalformed, PeerForeign, CheckpointError, or the failure of the stream */
export async function receiveGeneration(
  stream: AsyncIterable<Buffer>,
  { request, answer, epoch, ours, peer, store, apply, originFault, clock, signal }: ReceiveOptions,
): Promise<ReceivedGeneration> {
  const { slot, after } = request
  const { version } = answer
  const start = clock.monotonic()
  const stoppedAt = start - answer.ageMs
  if (!isNewer(version, after))
    throw new AgentError(
      'PeerMalformed',
      `${peer}: ${formatVersion(version)} is not newer than our generation`,
    )
  // A stored generation outlives its sender and outranks later generations.
  if (version.epoch > epoch)
    throw new AgentError(
      'GenerationImplausible',
      `${peer}: ${formatVersion(version)}, the Lease has epoch ${epoch}`,
    )
  if (version.generation - (after?.epoch === version.epoch ? after.generation : 0) > widestGap)
    throw new AgentError(
      'GenerationImplausible',
      `${peer}: ${formatVersion(version)}, we have ${formatVersion(after)}`,
    )
  if (answer.base !== undefined && !sameVersion(answer.base, request.base))
    throw new AgentError('PeerMalformed', `${peer}: the delta needs a base that we have not offered`)
  const base = answer.base && ours

  let bytes = 0
  let broken: { readonly error: unknown } | undefined
  const counted = async function* () {
    try {
      for await (const chunk of stream) {
        bytes += chunk.length
        if (bytes > store.budget + overheadBytes)
          throw new AgentError('PeerMalformed', `${peer}: the stream exceeds the budget of this node`)
        yield chunk
      }
    } catch (error) {
      broken = { error }
      throw error
    }
  }

  const release = base && store.retain(slot, base.manifest.generation, base.manifest.epoch)
  try {
    const draft = await store.begin(slot, version.generation, { overSpare: true })
    const accept = (manifest: Omit<Manifest, 'bytes'>) => {
      const bytes = manifest.files.reduce((sum, { size }) => sum + size, 0)
      const fault = originFault({ ...manifest, bytes })
      if (fault !== undefined) throw new AgentError('PeerForeign', `${peer}: ${fault}`)
    }
    const checked: Draft = {
      ...draft,
      commit: async (manifest, options) => {
        accept({ ...manifest, files: options?.files ?? [] })
        return draft.commit(manifest, options)
      },
    }
    try {
      const stored = await apply(counted(), base, onlyAs(request, answer, stoppedAt, checked), {
        signal,
        accept,
      })
      return { stored, slot, delta: base !== undefined, bytes, ms: clock.monotonic() - start }
    } catch (error) {
      await draft.discard()
      throw error
    }
  } catch (error) {
    // The failure of the stream comes first, as other errors may result from it.
    if (broken !== undefined) throw broken.error
    // Another source was faster: the store has a newer generation already.
    const there = store.latest(slot)
    if (isCheckpointError(error, 'Superseded') && there && isNewer(versionOf(there.manifest), after))
      return { stored: there, slot, delta: base !== undefined, bytes, ms: clock.monotonic() - start }
    throw error
  } finally {
    release?.()
  }
}

/** Wraps the draft so that only the generation announced in the head can be committed. */
function onlyAs(
  { slot }: GenerationRequest,
  { version }: GenerationHead,
  stoppedAt: number,
  draft: Draft,
): Draft {
  return {
    ...draft,
    commit: async (manifest, options) => {
      const same =
        manifest.epoch === version.epoch &&
        manifest.generation === version.generation &&
        isSameSlot(manifest.slot, slot)
      if (!same)
        throw new CheckpointError('BadManifest', 'the manifest and its head name different generations')
      return draft.commit(manifest, { ...options, stoppedAt })
    },
  }
}
