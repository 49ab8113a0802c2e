import type { Entry, Fault } from '../history.ts'
import type { Random } from '../random.ts'
import type { Stage } from '../stage.ts'

/** A fault with its target chosen: what it may do, how to inject it, and how to end it. */
export interface Blow extends Omit<Fault, 'type' | 'at' | 'nemesis'> {
  /** How long it lasts until `heal`, ms. */
  readonly holdMs: number
  strike(): Promise<void>
  /** Ends it. Safe to call after a strike that failed half-way. */
  heal(): Promise<void>
  /** Returns what it has measured. Called after full protection has returned. */
  after?(): Promise<readonly Entry[]>
}

export interface Nemesis {
  readonly name: string
  /** The claim that a round with it proves. */
  readonly proves: string
  /** Those of the same family are not combined: they would aim at the same thing. */
  readonly family:
    | 'app'
    | 'node'
    | 'agent'
    | 'operator'
    | 'network'
    | 'control-plane'
    | 'storage'
    | 'move'
    | 'change'
  /** The other faults of the round begin that much later than they would, ms. */
  readonly leadMs?: number
  /** The other faults of the round begin within this time, ms; absent: as always. */
  readonly othersWithinMs?: number
  aim(stage: Stage, random: Random): Promise<Blow>
}

/** A fault that this machine or this design cannot have, with the reason. */
export interface Impossible {
  readonly name: string
  readonly why: string
}

export const nothing = async (): Promise<void> => {}

/** The parts of a blow that most nemeses share. */
export const plain = {
  ...{
    slots: [],
    pods: [],
    unsaved: [],
    mayPromote: false,
    mayAnswerEmpty: false,
    outageMs: 0,
    holdMs: 0,
  },
  heal: nothing,
} as const
