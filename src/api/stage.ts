/** Names that operator and agents agree on for pods whose memory is kept. */
import type { Pod } from '../kube/resources.ts'
import { gateContainerName } from './gate.ts'
import { prefix } from './labels.ts'

/** Node label, set by the operator while the node's report says that memory can be saved and restored there. */
export const stageLabel = `${prefix}stage`
export const stageReady = 'ready'

/** Conditions of pods, written by agents alone. */
export const podConditions = {
  /** Readiness gate of understudies: True while the pod is on stage and its app answers. Of any primary: False with reason `Died` once its app has ended. */
  serving: `${prefix}serving`,
  /** True while the understudy could take over a slot; the reason is `Frozen` or `Staged`. */
  understudy: `${prefix}understudy`,
} as const

/** Reasons of `serving`. */
export const servingReasons = {
  /** A container of the primary ended, or its liveness was lost, or it was stopped for its deletion: its memory is gone and it must not answer any more. */
  died: 'Died',
  onStage: 'OnStage',
  offStage: 'OffStage',
  notAnswering: 'NotAnswering',
} as const

/**
 * Reason of `understudy` with which an agent says that nothing can be brought back in this one any more: it is replaced.
 * Also the code of the error that says so.
 */
export const spoiledReason = 'UnderstudySpoiled'

/** Pods made for memory carry it; others are as in the paper. */
export const memoryAnnotation = `${prefix}memory`
export const memoryKept = 'kept'

/**
 * What agents need to know of the template that a pod was made from, for the template of its set may be another one by now:
 * names of the containers that are saved, separated by commas, and, where understudies have them no more, their probes.
 */
export const savedAnnotation = `${prefix}saved-containers`
export const probesAnnotation = `${prefix}probes`
export const probeKinds = ['startupProbe', 'readinessProbe', 'livenessProbe'] as const

/**
 * Which containers of the pod are saved, and which lives of them run: `NAME=ID,NAME=ID`, in the order of the spec. Where
 * this changes, what ran there has ended, whatever counters say. Undefined until the runtime has made all of them.
 */
export function containerIdsOf({ metadata, spec, status }: Pod): string | undefined {
  const saved = metadata.annotations?.[savedAnnotation]?.split(',')
  const names = (spec?.containers ?? []).map(({ name }) => name).filter(name => saved?.includes(name) ?? true)
  const ids = names.map(name => status?.containerStatuses?.find(one => one.name === name)?.containerID)
  if (names.length === 0 || ids.some(id => !id)) return undefined
  return names.map((name, index) => `${name}=${ids[index]}`).join(',')
}

/**
 * Volume of understudies with a directory NAME for each container that is held, which is all that this container sees of it:
 * the waker and, because who puts that there does not know the user that the container runs as, `run-NAME/hold.sock` in a
 * directory that `hold` makes itself. In pods of earlier versions all containers see the whole volume.
 */
export const holdVolume = 'understudy-hold'
export const holdPath = '/.understudy'
export const holdDirectory = (container: string): string => `${holdPath}/run-${container}`
export const holdInitContainer = 'understudy-hold'

/** Its containers only hold the stage. Read off what cannot be changed in a pod: of a cold backup the gate is the installer, too. */
export function isUnderstudy({ spec }: Pod): boolean {
  const has = (name: string) => spec?.initContainers?.some(container => container.name === name) ?? false
  if (has(holdInitContainer)) return true
  const gates = spec?.readinessGates ?? []
  return has(gateContainerName) && gates.some(({ conditionType }) => conditionType === podConditions.serving)
}

/** Of a hot backup that was made because a slot had none left: the number of the slot that it is to take. */
export const successorAnnotation = `${prefix}successor-of`

/** Where the gate of a cold backup takes wake messages of its node's agent. */
export const gateSocket = `${holdPath}/gate.sock`
/** What an agent is to tell the gate of a pod: `KIND TOKEN`. The token opens this one gate, and no other. */
export const wakeAnnotation = `${prefix}wake`

/** Which memory a pod has gone on with, as the message of its condition `serving` ends. */
export interface BroughtBack {
  readonly generation: number
  /** RFC 3339, by the clock of the node that saved it. */
  readonly takenAt: string
}

export const broughtBackNote = ({ generation, takenAt }: BroughtBack): string =>
  `; generation ${generation} of ${takenAt}`

export function parseBroughtBack(message: string): BroughtBack | undefined {
  const [, generation, takenAt] = /; generation (\d{1,15}) of (\S+)$/.exec(message) ?? []
  if (generation === undefined || takenAt === undefined || Number.isNaN(Date.parse(takenAt))) return undefined
  return { generation: Number(generation), takenAt }
}
