import { join } from 'node:path'
import { holdDirectory, holdVolume } from '../../api/stage.ts'
import { mountsOf } from '../discover/container.ts'
import { emptyDirs, mountPoints, rootMount, upperDirectory } from '../discover/volumes.ts'
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
 * @throws AgentError Unsupported for a writable layer that is none of its own: what changed in it cannot be told.
 */
export async function planSaves(
  deps: Pick<DriverDependencies, 'fs'>,
  pod: LocatedPod,
  directory: string,
): Promise<Save[]> {
  const hostMounts = await mountsOf(deps.fs, deps.fs.host)
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
    for (const volume of emptyDirs(mounts, hostMounts, pod.pod.uid)) {
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
    if (over?.type === 'tmpfs' && emptyDirs([over], hostMounts, pod.pod.uid).length === 0)
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
