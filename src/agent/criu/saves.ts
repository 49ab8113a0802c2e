import { join } from 'node:path'
import { AgentError } from '../../api/agent-errors.ts'
import { holdDirectory, holdVolume } from '../../api/pod-contract.ts'
import { mountsOf } from '../container/container.ts'
import type { Mount } from '../container/mountinfo.ts'
import { podsDirectoryIn } from '../container/pods-directory.ts'
import type { ProcessRef, ProcFs } from '../container/process.ts'
import {
  emptyDirs,
  mayBeEmptyDirs,
  mountPoints,
  rootMount,
  upperDirectory,
  type Volume,
} from '../container/volumes.ts'
import type { LocatedPod } from './memory-driver.ts'

/** Files that belong to the memory of a pod. Paths are the host's. */
export type Save =
  | {
      readonly kind: 'layer'
      readonly container: string
      /** The container's first process; the layer is applied to its root. */
      readonly init: ProcessRef
      readonly upper: string
      /** Mount points inside the layer, relative to its root. */
      readonly exclude: readonly string[]
      readonly archive: string
      /** Lists the files in the layer, and the files of the image that were deleted. */
      readonly list: string
    }
  | ({ readonly kind: 'volume'; readonly name: string; readonly directory: string } & Kept)
  | ({
      readonly kind: 'shm'
      /** First process of a container that mounts /dev/shm, which has no path on the host. */
      readonly init: ProcessRef
      readonly directory: string
    } & Kept)

interface Kept {
  /** First processes of the containers that can write there. */
  readonly writers: readonly ProcessRef[]
  readonly archive: string
  readonly list: string
}

/**
 * Plans which files of a pod to save, and to which files of the generation. Reads none of them.
 *
 * @throws AgentError Unsupported for a writable root that is not an overlay, as nothing separates its changes from the
 *   image; for volumes if the kubelet's directory is unknown.
 */
export async function planSaves(
  deps: { readonly fs: ProcFs },
  pod: LocatedPod,
  directory: string,
): Promise<Save[]> {
  const emptyDirsOf = await emptyDirFinder(deps.fs, pod.pod.uid)
  const layers: Save[] = []
  const volumes = new Map<string, Save & { readonly kind: 'volume' }>()
  let shm: (Save & { readonly kind: 'shm' }) | undefined
  for (const { name, init } of pod.containers) {
    const mounts = await mountsOf(deps.fs, init.pid)
    const root = rootMount(mounts)
    if (root !== undefined && root.type !== 'overlay' && !root.readOnly)
      throw new AgentError('Unsupported', `container ${name}: its root is ${root.type}, not overlay`)
    const upper = upperDirectory(mounts)
    const container = join(directory, 'containers', name)
    if (upper !== undefined)
      layers.push({
        kind: 'layer',
        container: name,
        init,
        upper,
        // Where no volume is mounted for `hold`, as in the canary's containers, its key is in the layer.
        exclude: [...new Set([...mountPoints(mounts), holdDirectory(name).slice(1)])],
        archive: join(container, 'layer.tar'),
        list: join(container, 'layer.list'),
      })
    for (const volume of emptyDirsOf(mounts)) {
      // The understudy's own volume: its first process and its control socket.
      if (volume.name === holdVolume) continue
      const writers = [...(volumes.get(volume.name)?.writers ?? []), ...(volume.readOnly ? [] : [init])]
      const base = join(directory, 'volumes', volume.name)
      volumes.set(volume.name, {
        kind: 'volume',
        name: volume.name,
        directory: volume.hostPath,
        writers,
        archive: `${base}.tar`,
        list: `${base}.list`,
      })
    }
    // A pod has one /dev/shm: every container mounts the same one, unless a volume covers it.
    const over = mounts.findLast(mount => mount.mountPoint === '/dev/shm')
    if (over?.type === 'tmpfs' && emptyDirsOf([over]).length === 0)
      shm = {
        ...(shm ?? {
          kind: 'shm',
          init,
          directory: `${deps.fs.proc}/${init.pid}/root/dev/shm`,
          archive: join(directory, 'shm.tar'),
          list: join(directory, 'shm.list'),
        }),
        writers: [...(shm?.writers ?? []), init],
      }
  }
  return [...layers, ...volumes.values(), ...(shm === undefined ? [] : [shm])]
}

/** @throws AgentError Unsupported from the returned function. */
async function emptyDirFinder(fs: ProcFs, podUid: string): Promise<(mounts: readonly Mount[]) => Volume[]> {
  const hostMounts = await mountsOf(fs, fs.host)
  const pods = fs.pods ?? podsDirectoryIn(await mountsOf(fs, 'self'))
  if (pods !== undefined) return mounts => emptyDirs(mounts, hostMounts, pods, podUid)
  return mounts => {
    if (mayBeEmptyDirs(mounts, hostMounts))
      throw new AgentError(
        'Unsupported',
        'volumes: the directory of the kubelet is unknown, because no kubelet started this agent',
      )
    return []
  }
}
