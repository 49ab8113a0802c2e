import { holdDirectory, holdInitContainer, holdPath, holdVolume } from '../../api/stage.ts'
import { type Container, type InjectedResources, injectedContainer } from './injected-container.ts'
import { signalNumber } from './stop-signal.ts'

/** The volume that holds the stage, as what puts the waker into it has it: whole. */
export const mount = { name: holdVolume, mountPath: holdPath }

/** Where the waker is put for containers of these names. Of the volume each of them sees its own directory alone. */
export const installPaths = (held: readonly string[]): readonly string[] =>
  held.map(name => `${holdPath}/${name}`)

/** The first init container of an understudy: it puts the waker where the held containers of the pod can run it. */
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

/** An emptyDir, so that it can be written where the root filesystem cannot. */
export const holdPodVolume = { name: holdVolume, emptyDir: {} }

/**
 * A container of the template with the stage held in place of its app. Its words stay where they are, so that the
 * kubelet expands `$(VARIABLES)` in them for this very pod; a template without `command` leaves the program to the
 * image, whose entrypoint the agent gives with its order.
 *
 * Nothing listens while the stage is held, so there is nothing to probe: the agent does that after the promotion.
 * postStart would act for an app that is not there, and again in a pod that has been somebody's successor. preStop is the
 * successor's as it was the primary's, and a command of it does nothing before: the waker asks `hold` first.
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
      // The signal that an image names for its end is not known here; one outside of TERM, INT and QUIT then waits out
      // the grace of a pod that has no app.
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
