import type { BackupPodSet } from '../api/backuppodset.ts'
import { type ParsedSet, parseSet } from '../api/parse.ts'

/** The spec by which the operator manages a set. */
export type SpecInForce =
  | { readonly type: 'asWritten'; readonly set: ParsedSet }
  /** The spec is invalid; the last one that this process accepted stays in force. */
  | { readonly type: 'asBefore'; readonly set: ParsedSet; readonly code: string; readonly message: string }
  /**
   * The spec is invalid, and this process has accepted none: its readable parts; absent if not even its containers are
   * readable.
   */
  | {
      readonly type: 'legible'
      readonly set: ParsedSet | undefined
      readonly code: string
      readonly message: string
    }

/**
 * The accepted spec of one set. A spec that this version cannot read blocks changes but disowns nothing: a later
 * version may have stored it, or a rule has become stricter since.
 */
export interface AcceptedSpec {
  read(current: BackupPodSet): SpecInForce
}

export function createAcceptedSpec(): AcceptedSpec {
  let known: ParsedSet | undefined
  return {
    read(current) {
      const { generation = 0 } = current.metadata
      // Each change of the spec increments the generation; other writes to a set do not.
      if (known !== undefined && known.generation === current.metadata.generation)
        return { type: 'asWritten', set: known }
      const parsed = parseSet(current)
      if (parsed.ok) {
        known = parsed.set
        return { type: 'asWritten', set: parsed.set }
      }
      const { code, message, legible } = parsed
      // Pausing works even if nothing else in the spec is readable.
      const paused = (current.spec as { readonly paused?: unknown } | undefined)?.paused === true
      if (known !== undefined)
        return { type: 'asBefore', set: { ...known, generation, paused }, code, message }
      // Primaries end only by a spec that is valid as a whole.
      return { type: 'legible', set: legible && { ...legible, paused, suspended: false }, code, message }
    },
  }
}
