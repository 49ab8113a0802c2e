import type { BackupPodSet } from './backuppodset.ts'
import { type ParsedSet, parseSet } from './parse.ts'

/** The spec that a set is kept by. */
export type SpecInForce =
  | { readonly type: 'asWritten'; readonly set: ParsedSet }
  /** It is refused: the last one that this process has accepted stays in force. */
  | { readonly type: 'asBefore'; readonly set: ParsedSet; readonly code: string; readonly message: string }
  /** It is refused, and this process has accepted none: what of it can be read; absent where not even its containers can be. */
  | {
      readonly type: 'legible'
      readonly set: ParsedSet | undefined
      readonly code: string
      readonly message: string
    }

/**
 * A spec that this version cannot read refuses changes and disowns nothing: a later version may have stored it, or a rule
 * has become stricter since.
 */
export interface AcceptedSpecs {
  read(current: BackupPodSet): SpecInForce
  forget(uid: string): void
  /** Forgets all sets but these. */
  keepOnly(sets: readonly BackupPodSet[]): void
}

export function createAcceptedSpecs(): AcceptedSpecs {
  const accepted = new Map<string, ParsedSet>()
  return {
    read(current) {
      const { uid, generation = 0 } = current.metadata
      const known = accepted.get(uid)
      // Every change of a spec has a generation of its own; what else is written of a set has not.
      if (known !== undefined && known.generation === current.metadata.generation)
        return { type: 'asWritten', set: known }
      const parsed = parseSet(current)
      if (parsed.ok) {
        accepted.set(uid, parsed.set)
        return { type: 'asWritten', set: parsed.set }
      }
      const { code, message, legible } = parsed
      // To pause it is a change that needs nothing else to be readable.
      const paused = (current.spec as { readonly paused?: unknown } | undefined)?.paused === true
      if (known !== undefined)
        return { type: 'asBefore', set: { ...known, generation, paused }, code, message }
      return { type: 'legible', set: legible && { ...legible, paused }, code, message }
    },
    forget: uid => accepted.delete(uid),
    keepOnly(sets) {
      if (accepted.size <= sets.length) return
      const live = new Set(sets.map(({ metadata }) => metadata.uid))
      for (const uid of [...accepted.keys()]) if (!live.has(uid)) accepted.delete(uid)
    },
  }
}
