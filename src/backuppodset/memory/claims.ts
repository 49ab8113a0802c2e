/**
 * Persistent volume claims of a template, and how they affect its memory: which other pods may use the disk, and what
 * the disk contains after a failover.
 */
import type { ParsedSet } from '../../api/parse.ts'
import { reasons } from '../../api/reasons.ts'
import { objectIn, objectsIn } from '../../api/unknown.ts'
import type { Word } from '../../slot/decide/memory-view.ts'

/** A claim that a template names. */
export interface ClaimName {
  readonly name: string
  /** Every volume of it is mounted read-only: the app changes nothing on it. */
  readonly readOnly: boolean
}

/** The known state of a claim. `unread`: the claim has never been read successfully. */
export type ClaimState =
  | { readonly type: 'there'; readonly accessModes: readonly string[] }
  | { readonly type: 'missing' }
  | { readonly type: 'unread'; readonly why: string }

export type Claim = ClaimName & {
  readonly state: ClaimState
  /**
   * No primary uses it, although primaries exist: the template was changed, and the memory belongs to pods made before.
   */
  readonly unused?: boolean
}

/** Returns the claims in the volumes of this template, each once, in their order. */
export function claimsOf(template: ParsedSet['template']): readonly ClaimName[] {
  const claims = new Map<string, boolean>()
  for (const volume of objectsIn(template.spec.volumes)) {
    const { claimName, readOnly } = objectIn(volume['persistentVolumeClaim'])
    if (typeof claimName === 'string')
      claims.set(claimName, (claims.get(claimName) ?? true) && readOnly === true)
  }
  return [...claims].map(([name, readOnly]) => ({ name, readOnly }))
}

const untilThen =
  'until then no memory is saved, and after five minutes the agents delete the memory saved before' as const

/**
 * True for volumes that several nodes may attach at a time, by the same rule as Kubernetes' attach/detach controller.
 */
const isShared = (accessModes: readonly string[]): boolean =>
  accessModes.some(mode => mode === 'ReadWriteMany' || mode === 'ReadOnlyMany')

/**
 * Returns why the memory of pods with these claims must not be kept, with the cure; undefined if nothing forbids it.
 * @param isKept memory of the set is on other nodes already. A claim that cannot be read just now ends none of it.
 */
export function claimInTheWay(claims: readonly Claim[], isKept: boolean): Word | undefined {
  const used = claims.filter(({ unused }) => unused !== true)
  for (const { name, state } of used)
    if (state.type === 'there' && !isShared(state.accessModes))
      return {
        reason: reasons.claimNotShared,
        message: `claim ${name} is ${state.accessModes.join(' and ')}, for one node or pod at a time, so a successor could not use it; use a ReadWriteMany claim or an emptyDir, or set hotBackup.mode to Warm; ${untilThen}`,
      }
  for (const { name, state } of used) {
    if (state.type === 'missing')
      return {
        reason: reasons.claimMissing,
        message: `claim ${name} does not exist, and pods wait for it: create it with access mode ReadWriteMany; ${untilThen}`,
      }
    if (state.type === 'unread' && !isKept)
      return {
        reason: reasons.claimUnread,
        message: `claim ${name} could not be read (${state.why}): let the operator get persistentvolumeclaims; until then no memory is saved, because only its access modes tell whether a successor could use it`,
      }
  }
  return undefined
}

/** Returns warnings about claims that do not prevent memory from being kept. */
export function claimCaveats(claims: readonly Claim[]): readonly Word[] {
  const unused = claims.flatMap(claim => (claim.unused ? [{ ...claim, unused: false }] : []))
  const coming = claimInTheWay(unused, true)
  return [
    ...(coming ? [{ ...coming, message: `in pods of the current template: ${coming.message}` }] : []),
    ...aheadOfMemory(claims),
  ]
}

const aheadOfMemory = (claims: readonly Claim[]): readonly Word[] =>
  claims.flatMap(({ name, readOnly, state }): Word[] =>
    readOnly || state.type !== 'there' || !isShared(state.accessModes)
      ? []
      : [
          {
            reason: reasons.diskAheadOfMemory,
            message: `claim ${name} is not saved with the memory: after a failover its files are newer than the memory, by up to an interval`,
          },
        ],
  )
