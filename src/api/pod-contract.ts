/** Names shared by operator and agents, for pods whose memory is kept. */
import type { Pod } from '../kube/resources.ts'
import { gateContainerName } from './gate.ts'
import { prefix } from './labels.ts'

/** Node label. The operator sets it while the node's report says that memory can be saved and restored there. */
export const stageLabel = `${prefix}stage`
export const stageReady = 'ready'

/** Pod conditions that only agents write. */
export const podConditions = {
  /**
   * Readiness gate of understudies: True while the pod is on stage and its app answers. On any primary: reason `Died`
   * once its app has ended. Its status is then True while connections to the pod lead to its heir: the kubelet would
   * else take the pod out of its Services before the heir is in them, and a proxy that has synced a Service without
   * endpoints refuses connections for the second until its next sync.
   */
  serving: `${prefix}serving`,
  /** True while the understudy could take over a slot; the reason is `Frozen` or `Staged`. */
  understudy: `${prefix}understudy`,
} as const

/** Reasons of `serving`. */
export const servingReasons = {
  /**
   * A container of the primary ended, its liveness probe failed, or it was stopped for its deletion: its memory is
   * lost, and it must not answer any more.
   */
  died: 'Died',
  onStage: 'OnStage',
  /** A called understudy is about to run, or runs, and has not answered yet. */
  resuming: 'Resuming',
  offStage: 'OffStage',
  notAnswering: 'NotAnswering',
} as const

/**
 * Reason of `understudy` by which an agent reports that no memory can be restored in this pod any more, so that it is
 * replaced. Also the code of the corresponding error.
 */
export const spoiledReason = 'UnderstudySpoiled'

/** Marks pods made for memory; other pods are as in the paper. */
export const memoryAnnotation = `${prefix}memory`
export const memoryKept = 'kept'

/**
 * Parts of the pod's template that agents need, since the template of its set may have changed: the names of the saved
 * containers, separated by commas, and the probes that are removed from understudies.
 */
export const savedAnnotation = `${prefix}saved-containers`
export const probesAnnotation = `${prefix}probes`
export const probeKinds = ['startupProbe', 'readinessProbe', 'livenessProbe'] as const

/**
 * Returns the saved containers of the pod with their current container IDs: `NAME=ID,NAME=ID`, in the order of the
 * spec. If it changes, the earlier processes have ended, whatever counters say. Undefined until the runtime has created
 * all of them.
 */
export function containerIdsOf({ metadata, spec, status }: Pod): string | undefined {
  const saved = metadata.annotations?.[savedAnnotation]?.split(',')
  const names = (spec?.containers ?? []).map(({ name }) => name).filter(name => saved?.includes(name) ?? true)
  const ids = names.map(name => status?.containerStatuses?.find(one => one.name === name)?.containerID)
  if (names.length === 0 || ids.some(id => !id)) return undefined
  return names.map((name, index) => `${name}=${ids[index]}`).join(',')
}

/**
 * Volume of understudies with a directory NAME for each held container, which sees only that directory. It contains the
 * waker and `run-NAME/hold.sock`. `hold` creates the latter's directory itself, because the installer of the waker does
 * not know the user of the container. In pods of earlier versions all containers see the whole volume.
 */
export const holdVolume = 'understudy-hold'
export const holdPath = '/.understudy'
export const holdDirectory = (container: string): string => `${holdPath}/run-${container}`
export const holdInitContainer = 'understudy-hold'

/**
 * True if the pod's containers hold the place of their app. Derived from immutable fields only; in a cold backup, the
 * gate is also the installer.
 */
export function isUnderstudy({ spec }: Pod): boolean {
  const has = (name: string) => spec?.initContainers?.some(container => container.name === name) ?? false
  if (has(holdInitContainer)) return true
  const gates = spec?.readinessGates ?? []
  return has(gateContainerName) && gates.some(({ conditionType }) => conditionType === podConditions.serving)
}

/**
 * Seconds for which a hook of the saved containers delays the signal to end that the kubelet sends when the pod is deleted. In this
 * time the pod serves on, and its agent stops the app and saves it once more. Absent: the app may know of its end at once, and is not saved any more.
 */
export const heldEndAnnotation = `${prefix}held-end-seconds`

/** Bounds of the hook, seconds. Agents of earlier versions ignore a mark above `known`; the hook may be longer than its mark. */
export const heldEnd = { min: 2, max: 10, known: 5 } as const

/**
 * On a hot backup that was created because no backup was left for a slot: the number of the slot that it is to take.
 */
export const successorAnnotation = `${prefix}successor-of`

/** On a hot backup that was created for a move: the uid of the Migration. */
export const migrationAnnotation = `${prefix}migration-uid`

/**
 * On a hot backup that was created while the primary of its slot ran: it may not run on each node that the template allows, because it
 * was for another node, or for certain ones.
 */
export const confinedAnnotation = `${prefix}confined`

/** Socket on which the gate of a cold backup takes wake messages from its node's agent. */
export const gateSocket = `${holdPath}/gate.sock`
/** Order that an agent passes to the pod's gate: `KIND TOKEN`. The token opens only this gate. */
export const wakeAnnotation = `${prefix}wake`

/** A restored memory that a pod continues with. */
export interface BroughtBack {
  readonly generation: number
  /** RFC 3339, by the clock of the node that saved it. */
  readonly takenAt: string
}

/** The facts behind the condition `serving` of a pod; see `servingRecordOf`. */
export interface ServingRecord {
  /** Ids of the containers that are on stage, by name. Absent: the agent does not say. */
  readonly containers?: Readonly<Record<string, string>>
  readonly memory?: BroughtBack
  /** Name of the slot (`slotName`) whose memory ended with this pod's app. */
  readonly diedWith?: string
  /** False: its agent has ended the app, or has not seen how it ended, as after a reboot. Absent: the app has ended by itself. */
  readonly byItself?: false
  readonly left?: LeftMemory
}

/** The memory of its slot that the node of a dead pod can restore: its report says the same some milliseconds later. */
export interface LeftMemory extends BroughtBack {
  readonly epoch: number
  readonly usable: 'Staged' | 'Cold'
  /** When the agent said so, by the clock of its node, ms: a later report counts instead. */
  readonly at: number
}
