import type { InjectedResources } from '../../api/injected-resources.ts'
import { holdDirectory, holdInitContainer, holdPath, holdVolume } from '../../api/pod-contract.ts'
import { type Container, injectedContainer } from './injected-container.ts'
import { signalNumber } from './stop-signal.ts'

/** The hold volume as the installer of the waker mounts it: as a whole. */
export const mount = { name: holdVolume, mountPath: holdPath }

/**
 * Directories into which the waker is installed, for containers of these names. Each container mounts only its own one.
 */
export const installPaths = (held: readonly string[]): readonly string[] =>
  held.map(name => `${holdPath}/${name}`)

/**
 * Returns the first init container of an understudy: it installs the waker where the pod's held containers can run it.
 */
export function holdInit(
  image: string,
  held: readonly string[],
  beside: readonly Container[],
  resources: InjectedResources,
): Container {
  const command = ['/waker', 'install', ...installPaths(held)]
  return {
    ...injectedContainer(holdInitContainer, image, command, beside, resources),
    volumeMounts: [mount],
  }
}

/** An emptyDir, so that it is writable even if the root filesystem is not. */
export const holdPodVolume = { name: holdVolume, emptyDir: {} }

/**
 * Returns a container of the template that holds the place of its app. The original words remain in the command, so
 * that the kubelet expands `$(VARIABLES)` in them for this pod. A template without `command` leaves the program to the
 * image; the agent's order then contains the image's entrypoint.
 *
 * While the container is held nothing listens, so it has no probes: the agent probes after the promotion. postStart is
 * removed, since it would run without the app, and again in a former successor. preStop stays, for use after a
 * promotion; before one, its command does nothing: the waker asks `hold` first.
 */
export function heldContainer(container: Container): Container {
  const { livenessProbe, readinessProbe, startupProbe, lifecycle, ...rest } = container
  const { postStart, preStop, ...others } = lifecycle ?? {}
  const kept = {
    ...others,
    ...(preStop === undefined ? {} : { preStop: forAppOnly(preStop, container.name) }),
  }
  const stopSignal = signalNumber(lifecycle?.stopSignal)
  return {
    ...rest,
    ...(Object.keys(kept).length > 0 ? { lifecycle: kept } : {}),
    command: [
      `${holdPath}/waker`,
      'hold',
      '--dir',
      holdDirectory(container.name),
      // The stop signal that an image declares is unknown here. If it is not TERM, INT or QUIT, an understudy without
      // an app ends only after its grace period.
      ...(stopSignal === undefined ? [] : ['--stop-signal', String(stopSignal)]),
      '--',
      ...(container.command ?? []),
    ],
    volumeMounts: [...(container.volumeMounts ?? []), { ...mount, subPath: container.name }],
  }
}

type Hook = NonNullable<NonNullable<Container['lifecycle']>['preStop']>

function forAppOnly(hook: Hook, container: string): Hook {
  const command = hook.exec?.command ?? []
  if (command.length === 0) return hook
  return {
    exec: { command: [`${holdPath}/waker`, 'if-app', '--dir', holdDirectory(container), '--', ...command] },
  }
}
