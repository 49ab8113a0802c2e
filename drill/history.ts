/**
 * The history of a round: what clients asked and were answered, which pod each slot's Lease named, and which faults were
 * injected. A history is a file with one record a line, so that a round can be checked again.
 *
 * Times are milliseconds of the machine's monotonic clock, which all processes of a drill share.
 */
import { readFile, writeFile } from 'node:fs/promises'
import type { MigrationPhase } from '../src/api/migration.ts'

export const now = (): number => Number(process.hrtime.bigint()) / 1e6

/**
 * How a client reaches a slot. `fresh`: a connection for each request, to the slot's Service. `kept`: one connection to
 * that Service. `direct`: the address of a pod, from the pod's own node, where no cut of the network comes between.
 */
export const clientKinds = ['fresh', 'kept', 'direct'] as const
export type ClientKind = (typeof clientKinds)[number]

/** The counter's answer to an addition. */
export interface Answer {
  readonly count: number
  /** Name of the pod whose process answered. */
  readonly pod: string
  /** When the life of that memory began, by the clock of its first pod. */
  readonly startedAt: number
  /** Word of the addition before this one; empty: none. */
  readonly after: string
}

/** One addition of a client. Its word is its own. */
export interface Call {
  readonly type: 'call'
  readonly client: ClientKind
  readonly slot: number
  readonly word: string
  /** When the client begins to connect, or, on a kept connection, to send its request. */
  readonly start: number
  readonly end: number
  readonly answer?: Answer | undefined
  readonly error?: string | undefined
}

/** The memory with which a slot began. */
export interface Birth {
  readonly type: 'birth'
  readonly at: number
  readonly slot: number
  readonly startedAt: number
  /** Its count was set to this, so that a number tells its slot. */
  readonly base: number
}

/** The Lease of a slot, as a watch delivered it. */
export interface Epoch {
  readonly type: 'epoch'
  readonly at: number
  readonly slot: number
  readonly incarnation: string
  readonly epoch: number
  readonly pod: string
  readonly uid: string
  /** Uid of the primary that has handed the slot over, with all its memory; undefined: it was lost, or is the first. */
  readonly handedOverBy?: string | undefined
}

/** The age of a slot's copies, as the status states it. */
export interface Pace {
  readonly type: 'pace'
  readonly at: number
  readonly slot: number
  readonly intervalSeconds: number
  readonly pipelineSeconds: number
}

/** By how much a timer of a client was late: a measure of how busy the machine is. */
export interface Late {
  readonly type: 'late'
  readonly at: number
  readonly ms: number
}

/** More restarts of a pod's containers than before. */
export interface Restart {
  readonly type: 'restart'
  readonly at: number
  readonly pod: string
  readonly count: number
}

export interface Fault {
  readonly type: 'fault'
  readonly at: number
  readonly nemesis: string
  /** Its target, for people. */
  readonly target: string
  /** Slots whose clients may notice it. */
  readonly slots: readonly number[]
  /** Those slots may change hands. */
  readonly mayPromote: boolean
  /**
   * The voters that primaries may not hear: the API server, whose answers agents bring, one node, or the two ends of a link, each of
   * which may not hear the other. A primary has the API server and two nodes, and needs two of the three. Absent: none.
   */
  readonly silences?: 'Api' | readonly [node: string] | readonly [end: string, end: string] | undefined
  /** Pods whose containers may restart. */
  readonly pods: readonly string[]
  /**
   * No agent and no sentinel may notice at first what the kubelet starts in the place of an app: it may answer, empty, at
   * the pod's own address, but through no Service (docs/failure-model.md).
   */
  readonly mayAnswerEmpty: boolean
  /** Slots of which no newer memory may reach their heirs while it lasts. */
  readonly unsaved: readonly number[]
  /** Its part in the outage of a slot that a fault has hit, by the failure model. */
  readonly outageMs: number
  /** Its part in the longest time for which a fence may keep a primary stopped; undefined: as long as it likes. */
  readonly fencedMs?: number | undefined
}

/** A primary was stopped because too few of its voters answered, as the sentinel of its node has logged it. */
export interface Fenced {
  readonly type: 'fenced'
  readonly at: number
  readonly uid: string
  readonly ms: number
}

/** A node was paused. */
export interface Pause {
  readonly type: 'pause'
  /** When the order to pause it was given. */
  readonly at: number
  readonly node: string
  /** Until it ran again. */
  readonly ms: number
}

/** A node that was paused runs again, with a pod that was a primary before the pause. */
export interface Resume {
  readonly type: 'resume'
  readonly at: number
  readonly slot: number
  readonly uid: string
  readonly pod: string
  /** From the order to resume until the first of its processes was seen stopped, or had ended; undefined: none was. */
  readonly stoppedMs?: number | undefined
  /** The same process after full protection has returned. */
  readonly fate: 'Runs' | 'Stopped' | 'Gone'
}

/** A Migration, when it had ended, was deleted, or was not waited for any longer. */
export interface Move {
  readonly type: 'move'
  readonly at: number
  readonly slot: number
  /** Uid of the pod that was to move. */
  readonly source: string
  /** Uid of the pod that was to take the slot, as the status said at last. */
  readonly target?: string | undefined
  readonly ended: 'Succeeded' | 'Failed' | 'CalledOff' | 'Unfinished'
  /** The phase in which it was seen last before its end. */
  readonly phase?: MigrationPhase | undefined
  /** Of its condition, as it was seen last. */
  readonly reason?: string | undefined
}

/** The beginning of a round: earlier entries are those of former rounds that its rules need. */
export interface Begin {
  readonly type: 'round'
  readonly at: number
}

/** The end of all faults. */
export interface Healed {
  readonly type: 'healed'
  readonly at: number
}

/** All slots are protected again, or were not when the wait ended. */
export interface Protection {
  readonly type: 'protection'
  readonly at: number
  readonly isFull: boolean
  readonly limitMs: number
  readonly says: string
}

/** The end of the record. */
export interface End {
  readonly type: 'end'
  readonly at: number
}

export type Entry =
  | Begin
  | Call
  | Birth
  | Epoch
  | Pace
  | Late
  | Restart
  | Fault
  | Fenced
  | Pause
  | Resume
  | Move
  | Healed
  | Protection
  | End

export type History = readonly Entry[]

export const writeHistory = (path: string, history: History): Promise<void> =>
  writeFile(path, history.map(entry => `${JSON.stringify(entry)}\n`).join(''))

/** @throws Error that names the line, if the file is no history */
export async function readHistory(path: string): Promise<History> {
  const lines = (await readFile(path, 'utf8')).split('\n').filter(Boolean)
  return lines.map((line, index) => parseEntry(line, `${path}:${index + 1}`))
}

const types: ReadonlySet<string> = new Set<Entry['type']>([
  ...([
    'round',
    'call',
    'birth',
    'epoch',
    'pace',
    'late',
    'restart',
    'fault',
    'fenced',
    'pause',
    'resume',
    'move',
    'healed',
    'protection',
    'end',
  ] as const),
])

function parseEntry(line: string, where: string): Entry {
  const entry = JSON.parse(line) as Entry
  if (!types.has(entry.type)) throw new Error(`${where}: no entry of a history: ${line.slice(0, 100)}`)
  return entry
}
