/** Whether memory of another pod may be restored in this one, before CRIU reads any of it. */
import { AgentError } from '../../api/agent-errors.ts'
import { assertAddressSpaces } from '../../checkpoint/images/address-space.ts'
import { credentialsOf } from '../../checkpoint/images/credentials.ts'
import { precedenceOf } from '../../checkpoint/images/limits.ts'
import { reachOf } from '../../checkpoint/images/reach.ts'
import type { ContainerImage, Manifest } from '../../checkpoint/manifest.ts'
import { misfit } from '../../slot/decide/machine-fit.ts'
import type { DriverDependencies } from './dependencies.ts'
import { beyondPrecedence, type Limits, livingLimits, mayRaiseLimits } from './limits.ts'
import type { LocatedAppContainer, LocatedPod } from './memory-driver.ts'
import { beyondReach } from './reach.ts'
import { excess, livingRights } from './rights.ts'
import { pageSize } from './room.ts'

/** @throws AgentError PodForeign, MachineDiffers. */
export function assertFits(deps: DriverDependencies, { pod }: LocatedPod, manifest: Manifest): void {
  const { namespace } = manifest.slot
  if (namespace !== pod.namespace)
    throw new AgentError('PodForeign', `memory from ${namespace}, pod in ${pod.namespace}`)
  const unfit = deps.machine && misfit(manifest, deps.machine)
  if (unfit !== undefined) throw new AgentError('MachineDiffers', unfit.message)
}

/** @throws AgentError RestoreFailed, ImageDiffers. */
export function imageFor(container: LocatedAppContainer, images: readonly ContainerImage[]): ContainerImage {
  const image = images.find(it => it.name === container.name)
  if (image === undefined) throw new AgentError('RestoreFailed', `no memory of container ${container.name}`)
  if (image.imageId !== container.imageId)
    throw new AgentError(
      'ImageDiffers',
      `container ${container.name}: ${container.imageId}, not ${image.imageId}`,
    )
  return image
}

/**
 * @returns the limits that the restored processes must keep to; undefined: the container may have any.
 * @throws AgentError CredentialsExceed, ProcessGone, CheckpointError BadImage.
 */
export async function assertWithinRights(
  deps: DriverDependencies,
  { init, name }: LocatedAppContainer,
  images: string,
): Promise<Limits | undefined> {
  const [holder, limits] = [await livingRights(deps.fs, init.pid), await livingLimits(deps.fs, init.pid)]
  if (holder === undefined || limits === undefined) throw new AgentError('ProcessGone', `container ${name}`)
  // Reads the images and not the manifest: the other node wrote the manifest, and it may not match them.
  await assertAddressSpaces(images, await pageSize())
  const more = [
    ...(await credentialsOf(images)).flatMap(held => excess(held, holder)),
    ...(await precedenceOf(images)).flatMap(held => beyondPrecedence(held, limits, holder)),
    ...beyondReach(await reachOf(images), holder),
  ]
  if (more.length > 0)
    throw new AgentError('CredentialsExceed', `container ${name}: ${[...new Set(more)].join('; ')}`)
  return mayRaiseLimits(holder) ? undefined : limits
}
