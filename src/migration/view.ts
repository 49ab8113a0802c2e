/** A Migration and the facts about it, as the rules see them. */
import type { Refusal } from '../api/errors.ts'
import type { MigrationStatus } from '../api/migration.ts'
import type { ParsedMigration } from '../api/parse-migration.ts'
import type { Waited } from './patience.ts'

export interface MigrationView {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly generation: number
  /** By the clock of the API server, ms since the epoch. */
  readonly createdAt: number
  readonly wish: { readonly ok: true; readonly wish: ParsedMigration } | ({ readonly ok: false } & Refusal)
  readonly status: MigrationStatus
  readonly facts: Facts
}

/** The facts in the caches about the pod that moves, and about the pod that takes its slot. */
export type Facts =
  /** The caches show no pod of a set that has the name. */
  | { readonly type: 'absent'; readonly seenForMs: number }
  /** A pod has the name, and is another one. */
  | { readonly type: 'another' }
  /** A pod of a set that is no primary, or has just become one. */
  | { readonly type: 'backup'; readonly seenForMs: number }
  /** A primary without a slot whose memory is kept. */
  | { readonly type: 'unkept'; readonly seenForMs: number }
  | Held
  | Passed

/** The pod that moves has its slot. */
export interface Held {
  readonly type: 'held'
  readonly source: NonNullable<MigrationStatus['source']>
  /** Its set is paused, and does nothing. */
  readonly isPaused: boolean
  /** Its set is to be suspended. */
  readonly isSuspended?: boolean
  /** The slot's Lease asks for the stop of the source. */
  readonly isStopping: boolean
  readonly target: Target | undefined
  /** The shortest start that is known of pods of its set, ms; undefined: none is known. */
  readonly restartMs: number | undefined
  /** Number of nodes to which it may move, apart from its own. */
  readonly nodes: number
  /** The last generation of the source. */
  readonly saved: Saved | undefined
  /** For how long its agent has written nothing, ms. */
  readonly silentMs: number
}

export interface Saved {
  readonly generation: number
  readonly bytes: number | undefined
  /** Why it cannot be saved now, as its agent says. */
  readonly obstacle: string | undefined
  /** It was stopped and could not be handed over in time. Its agent makes a pause before it stops the pod again. */
  readonly handoverPaused?: boolean | undefined
}

/** The pod that is to take the slot. */
export interface Target {
  readonly name: string
  readonly uid: string
  readonly node: string | undefined
  /** By the clock of the API server, ms since the epoch. */
  readonly createdAt: number
  /** Why no node takes it, in the scheduler's words. */
  readonly unschedulable: string | undefined
  /** Why it could not be given the memory. */
  readonly failed: string | undefined
  /** The node has the memory, and could resume it in the pod. */
  readonly hasMemory: boolean
  /** How long the source would be stopped, ms; undefined: not known. */
  readonly impliedDowntimeMs: number | undefined
  /** How long the Migration has looked for a short stop; undefined: the node has no memory yet. */
  readonly waited: Waited | undefined
}

/** Another pod has the slot. */
export interface Passed {
  readonly type: 'passed'
  readonly to: { readonly name: string; readonly uid: string; readonly node: string | undefined }
  readonly serves: boolean
  /** True: it took over after a loss. False: the pod that moves has handed its slot over to it. */
  readonly isLoss: boolean
  /** Its node is known, and has not the labels that the Migration asks for. */
  readonly isOutside: boolean
  /** Ms for which the pod was stopped; undefined: not measured. */
  readonly downtimeMs: number | undefined
}
