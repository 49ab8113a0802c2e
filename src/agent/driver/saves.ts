import { join } from 'node:path'
import { holdDirectory, holdVolume } from '../../api/stage.ts'
import { mountsOf } from '../discover/container.ts'
import type { Mount } from '../discover/mountinfo.ts'
import { podsDirectoryIn } from '../discover/pods-directory.ts'
import type { ProcFs } from '../discover/process.ts'
import {
  emptyDirs,
  mayBeEmptyDirs,
  mountPoints,
  rootMount,
  upperDirectory,
  type Volume,
} from '../discover/volumes.ts'
import { AgentError } from '../errors.ts'
import type { ProcessRef } from '../sentinel.ts'
import type { DriverDependencies } from './dependencies.ts'
import type { LocatedPod } from './memory-driver.ts'

/** Files that belong to the memory of a pod. Paths are the host's. */
export type Save =
  | {
      readonly kind: 'layer'
      readonly container: string
      /** The container's first process: whose root the layer is applied to. */
      readonly init: ProcessRef
      readonly upper: string
      /** What is mounted over it, relative to its root. */
      readonly exclude: readonly string[]
      readonly archive: string
      /** What is there, and what was deleted from the image. */
      readonly list: string
    }
  | ({ readonly kind: 'volume'; readonly name: string; readonly directory: string } & Kept)
  | ({
      readonly kind: 'shm'
      /** First process of a container that has it mounted: on the host it has no name. */
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
 * What of a pod has to be saved, and into which files of the generation; nothing is read yet.
 *
 * @throws AgentError Unsupported for a writable layer that is none of its own: what changed in it cannot be told; for volumes
 * where nobody knows which directory is the kubelet's.
 */
export async function planSaves(
  deps: Pick<DriverDependencies, 'fs'>,
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
      throw new AgentError('Unsupported', `container ${name}: its root is ${root.type} and not an overlay`)
    const upper = upperDirectory(mounts)
    const container = join(directory, 'containers', name)
    if (upper !== undefined)
      layers.push({
        kind: 'layer',
        container: name,
        init,
        upper,
        // Where nothing is mounted for it, as in the canary's containers, the key of `hold` lies in the layer.
        exclude: [...new Set([...mountPoints(mounts), holdDirectory(name).slice(1)])],
        archive: join(container, 'layer.tar'),
        list: join(container, 'layer.list'),
      })
    for (const volume of emptyDirsOf(mounts)) {
      // The understudy's own: its first process and the socket that takes its orders.
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
    // One for the whole pod: every container has the same one mounted, unless a volume lies over it.
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

/** @throws AgentError Unsupported by what it returns. */
async function emptyDirFinder(fs: ProcFs, podUid: string): Promise<(mounts: readonly Mount[]) => Volume[]> {
  const hostMounts = await mountsOf(fs, fs.host)
  const pods = fs.pods ?? podsDirectoryIn(await mountsOf(fs, 'self'))
  if (pods !== undefined) return mounts => emptyDirs(mounts, hostMounts, pods, podUid)
  return mounts => {
    if (mayBeEmptyDirs(mounts, hostMounts))
      throw new AgentError(
        'Unsupported',
        'volumes: no kubelet has made the container of the agent, so the directory of the kubelet is not known',
      )
    return []
  }
}
