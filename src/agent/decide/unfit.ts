import { misfit } from '../../slot/decide/machine-fit.ts'
import type { Kept, PodView, Snapshot } from '../observe/snapshot.ts'

/** Why memory of this node cannot be restored here, with a cure. */
export interface Unfit {
  readonly reason: string
  readonly message: string
}

/** Why this node cannot run that memory at all; undefined: it can. Pure. */
export const unfitNode = ({ machine }: Pick<Snapshot, 'machine'>, kept: Kept): Unfit | undefined =>
  machine === undefined || kept.machine === undefined ? undefined : misfit(kept.machine, machine)

/**
 * Why that understudy's images do not fit the memory; undefined: they do. Programs are mapped from their files, and a
 * tag may have moved between two nodes' pulls. Pure.
 */
export function unfitImages({ containers }: Pick<PodView, 'containers'>, kept: Kept): Unfit | undefined {
  const other = containers.find(({ name, imageId }) => {
    const needed = kept.imageIds?.get(name)
    return needed !== undefined && imageId !== '' && imageId !== needed
  })
  if (other === undefined) return undefined
  return {
    reason: 'ImageDiffers',
    message: `container ${other.name} runs ${other.imageId}, but the memory is from ${kept.imageIds?.get(other.name)}; name the image by its digest, or delete the understudy once the node has the right image`,
  }
}
