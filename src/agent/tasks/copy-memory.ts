import { mkdir, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AgentError } from '../../api/agent-errors.ts'
import { isNewer, slotName } from '../../checkpoint/manifest.ts'
import type { GenerationStore } from '../../checkpoint/store.ts'
import type { TaskOf } from '../decide/task.ts'
import { generationsOf } from '../observe/generations.ts'
import type { Progress } from '../state/progress.ts'
import type { TaskContext } from './task-context.ts'

interface CopyContext extends Pick<TaskContext, 'announce' | 'sign' | 'log'> {
  readonly store: Pick<GenerationStore, 'list' | 'begin' | 'retain'>
  readonly progress: Pick<Progress, 'succeeded'>
}

/**
 * Copies the newest generation of another slot: it becomes the first one of this slot, with the signature of this node. The
 * files of the copy are its own, because the store writes over those of older generations.
 * @throws AgentError CloneSourceGone; CheckpointError StoreFull and others; the signal's reason.
 */
export async function copyMemory(
  { store, sign, announce, progress, log }: CopyContext,
  { lease, from }: TaskOf<'copyMemory'>,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name, incarnation, epoch } = lease
  const key = { namespace, name, incarnation }
  const source = { namespace, name: from.name, incarnation: from.incarnation }
  const [newest] = generationsOf(store, source)
  if (newest === undefined || isNewer(from, newest.manifest))
    throw new AgentError(
      'CloneSourceGone',
      `generation ${from.generation} of ${slotName(source)} is not on this node any more`,
    )
  const { files, bytes, signed: _, final: __, ...manifest } = newest.manifest
  const release = store.retain(source, manifest.generation, manifest.epoch)
  try {
    // The primary that runs on comes first: there must be room for its next generation, too.
    const draft = await store.begin(key, 1, { expectedBytes: 2 * bytes })
    // Why an earlier try found no room is no reason to choose another node while this one copies.
    progress.succeeded(slotName(key))
    try {
      for (const { path } of files) {
        const to = join(draft.dir, path)
        await mkdir(dirname(to), { recursive: true, mode: 0o700 })
        await copyFile(join(newest.dir, path), to, signal)
      }
      // The store reads the copy once more, so the digests are those of the written files.
      // As if it came from the pod that the Lease names: from there on it is memory like any other.
      const { name: pod, uid: podUid } = lease.holder
      const origin = { ...manifest.source, pod, podUid, node: from.node }
      await draft.commit({ ...manifest, slot: key, epoch, generation: 1, source: origin }, { sign, signal })
    } finally {
      await draft.discard()
    }
  } finally {
    release()
  }
  announce(key)
  log.info({ slot: slotName(key), from: slotName(source), generation: manifest.generation }, 'memory copied')
}

/** Bytes between two looks at the signal. */
const chunkBytes = 1 << 22

/** Copies a file piece by piece: a copy of a whole image of memory could not be called off for seconds. */
async function copyFile(from: string, to: string, signal: AbortSignal): Promise<void> {
  await using source = await open(from, 'r')
  await using target = await open(to, 'wx', 0o600)
  const chunk = Buffer.allocUnsafe(chunkBytes)
  for (;;) {
    signal.throwIfAborted()
    const { bytesRead } = await source.read(chunk)
    if (bytesRead === 0) return
    await target.writeFile(chunk.subarray(0, bytesRead))
  }
}
