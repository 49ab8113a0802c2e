import { createAcceptedSpecs } from '../api/accepted-spec.ts'
import type { BackupPodSet } from '../api/backuppodset.ts'
import type { ParsedSet } from '../api/parse.ts'
import type { Action, Plan } from './plan.ts'

/** Why a set's spec is not followed. */
export interface RefusedSpec {
  readonly code: string
  readonly message: string
}

/** What a set is run by. */
export type InForce =
  | { readonly type: 'asWritten'; readonly set: ParsedSet }
  /** The spec is refused: the last one that this process has accepted stays in force. */
  | { readonly type: 'asBefore'; readonly set: ParsedSet; readonly refusal: RefusedSpec }
  /** There is none, since this process has begun later: what exists fails over, and nothing is made or deleted. */
  | { readonly type: 'takeovers'; readonly set: ParsedSet; readonly refusal: RefusedSpec }
  /** Nothing can be done for it. */
  | { readonly type: 'nothing'; readonly refusal: RefusedSpec }

/**
 * A spec that this version cannot read refuses changes, and not failovers: it may have been stored by a later version,
 * or before a rule became stricter, and its primaries run.
 */
export interface Specs {
  inForce(current: BackupPodSet): InForce
  forget(uid: string): void
}

export function createSpecs(): Specs {
  const specs = createAcceptedSpecs()
  return {
    inForce(current) {
      const read = specs.read(current)
      if (read.type === 'asWritten') return read
      const { type, set, code, message } = read
      if (type === 'asBefore') {
        const refusal = { code, message: `${message}; until then the spec before it stays in force` }
        return { type, set, refusal }
      }
      const { replicas = 0, hotbackups = 0, coldbackups = 0 } = current.status ?? {}
      if (set === undefined || replicas + hotbackups + coldbackups === 0)
        return { type: 'nothing', refusal: { code, message } }
      const refusal = {
        code,
        message: `${message}; until then backups take over from primaries, and no pod is made`,
      }
      // Of a number that cannot be read the default may be fewer than there are.
      return { type: 'takeovers', set: { ...set, replicas: Math.max(set.replicas, replicas) }, refusal }
    },
    forget: specs.forget,
  }
}

/** What of a plan lets backups take over, and makes and deletes nothing that a spec would have to name. */
export function takeoversOf(plan: Plan): Plan {
  const stages = plan.stages
    .filter(({ tier }) => tier !== 'rollout')
    .map(stage => ({ ...stage, actions: stage.actions.filter(isTakeover) }))
    .filter(({ actions }) => actions.length > 0)
  return { ...plan, stages }
}

function isTakeover(action: Action): boolean {
  switch (action.type) {
    case 'promote':
    case 'convert':
    case 'wake':
    case 'restore':
    case 'retire':
    case 'assign':
    case 'publish':
      return true
    case 'delete':
      return action.reason === 'Superseded'
    case 'adopt':
    case 'release':
    case 'create':
    case 'forget':
    case 'giveUp':
    case 'record':
    case 'prune':
    case 'serve':
    case 'withdraw':
      return false
    default:
      return action satisfies never
  }
}
