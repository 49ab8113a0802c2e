import type { BackupPodSet } from '../api/backuppodset.ts'
import type { ParsedSet } from '../api/parse.ts'
import { createAcceptedSpec } from './accepted-spec.ts'
import type { Action, Plan } from './plan.ts'

/** Why the operator does not follow a set's spec. */
export interface RefusedSpec {
  readonly code: string
  readonly message: string
}

/** The spec by which the operator runs a set. */
export type InForce =
  | { readonly type: 'asWritten'; readonly set: ParsedSet }
  /** The spec is invalid; the last one that this process accepted stays in force. */
  | { readonly type: 'asBefore'; readonly set: ParsedSet; readonly refusal: RefusedSpec }
  /**
   * The spec is invalid, and this process started later than that and has accepted none: only takeovers, no creations
   * or deletions.
   */
  | { readonly type: 'takeovers'; readonly set: ParsedSet; readonly refusal: RefusedSpec }
  /** The operator can do nothing for this set. */
  | { readonly type: 'nothing'; readonly refusal: RefusedSpec }

/**
 * The spec of one set. A spec that this version cannot read blocks changes but not failovers. A later version may have
 * stored it, or it may be older than a rule that became stricter; its primaries run all the same.
 */
export interface Spec {
  inForce(current: BackupPodSet): InForce
}

export function createSpec(): Spec {
  const accepted = createAcceptedSpec()
  return {
    inForce(current) {
      const read = accepted.read(current)
      if (read.type === 'asWritten') return read
      const { type, set, code, message } = read
      if (type === 'asBefore') {
        const refusal = { code, message: `${message}; until then the previous spec stays in force` }
        return { type, set, refusal }
      }
      const { replicas = 0, hotbackups = 0, coldbackups = 0 } = current.status ?? {}
      if (set === undefined || replicas + hotbackups + coldbackups === 0)
        return { type: 'nothing', refusal: { code, message } }
      const refusal = {
        code,
        message: `${message}; until then backups take over from primaries, and no pod is created`,
      }
      // If `replicas` is unreadable, its default may be less than the number of slots that exist.
      return { type: 'takeovers', set: { ...set, replicas: Math.max(set.replicas, replicas) }, refusal }
    },
  }
}

/**
 * Returns the part of a plan that lets backups take over. It creates and deletes nothing for which a valid spec is
 * needed.
 */
export function takeoversOf(plan: Plan): Plan {
  const tiers = plan.tiers
    .filter(({ tier }) => tier !== 'rollout')
    .map(stage => ({ ...stage, actions: stage.actions.filter(isTakeover) }))
    .filter(({ actions }) => actions.length > 0)
  return { ...plan, tiers }
}

function isTakeover(action: Action): boolean {
  switch (action.type) {
    case 'promote':
    case 'convert':
    case 'wake':
    case 'restore':
    case 'retire':
    case 'writeSlot':
    case 'writePolicy':
    case 'endGrant':
    case 'stateSilence':
    case 'applyEndpoints':
      return true
    case 'delete':
      return action.reason === 'Superseded'
    case 'adopt':
    case 'release':
    case 'create':
    case 'deleteSlot':
    case 'giveUp':
    case 'saveRevision':
    case 'deleteRevision':
    case 'applyService':
    case 'deleteService':
      return false
    default:
      return action satisfies never
  }
}
