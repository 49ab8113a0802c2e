/** Spans as data, and their ids. Pure: no file but `otlp.ts` knows the library that sends them. */
import { createHash } from 'node:crypto'

export type Attribute = string | number | boolean

/** A part of a trace that has ended. */
export interface Span {
  /** 32 hex digits. */
  readonly traceId: string
  /** 16 hex digits. */
  readonly spanId: string
  /** Absent: the root of its trace. */
  readonly parentId?: string
  readonly name: string
  /** Wall clock, ms since the epoch, with fractions. */
  readonly from: number
  readonly to: number
  readonly attributes: Readonly<Record<string, Attribute>>
  /** Why the work of this span failed. */
  readonly failure?: string
}

/** Takes spans to be sent. It never throws and never waits; where nothing is sent, it does not call `make`. */
export type TraceSink = (make: () => readonly Span[]) => void

/** One change of hands of a slot: operator and agents derive its trace from facts that all of them have. */
export interface SlotChange {
  /** Uid of the object that owns the slot. */
  readonly owner: string
  /** Name of the slot's Lease. */
  readonly slot: string
  /** The epoch that begins with it. */
  readonly epoch: number
}

export const traceOfChange = ({ owner, slot, epoch }: SlotChange): string =>
  digest(32, 'slot', owner, slot, String(epoch))

/** Returns the trace of a Migration that has moved nothing. */
export const traceOfMigration = (uid: string): string => digest(32, 'migration', uid)

/** Returns the id of a span by what it is about: the same span sent twice, by whichever process, has the same id. */
export const spanIdOf = (traceId: string, ...what: readonly string[]): string => digest(16, traceId, ...what)

/** The operator sends the root, and agents name it as their parent without a word of the operator. */
export const rootOf = (traceId: string): string => spanIdOf(traceId, 'root')

/** With lengths, so that no two lists of parts have one text. */
const digest = (digits: number, ...parts: readonly string[]): string =>
  createHash('sha256')
    .update(parts.map(part => `${part.length}:${part}`).join(''))
    .digest('hex')
    .slice(0, digits)

/** Characters: longer than any name of Kubernetes. Messages may have any length. */
const longest = 256

/** Leaves out what is not known, and cuts long texts. */
export const attributesOf = (
  given: Readonly<Record<string, Attribute | undefined>>,
): Readonly<Record<string, Attribute>> =>
  Object.fromEntries(
    Object.entries(given).flatMap(([key, value]) =>
      value === undefined ? [] : [[key, typeof value === 'string' ? cut(value) : value] as const],
    ),
  )

export const cut = (text: string): string => (text.length > longest ? `${text.slice(0, longest - 1)}…` : text)
