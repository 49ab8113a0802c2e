import type { BackupPodSet } from '../api/backuppodset.ts'
import { type ParsedSet, parseSet } from '../api/parse.ts'
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
  const accepted = new Map<string, ParsedSet>()
  return {
    inForce(current) {
      const known = accepted.get(current.metadata.uid)
      // Every change of a spec has a generation of its own; what else is written of a set has not.
      if (known !== undefined && known.generation === current.metadata.generation)
        return { type: 'asWritten', set: known }
      const parsed = parseSet(current)
      if (parsed.ok) {
        accepted.set(parsed.set.uid, parsed.set)
        return { type: 'asWritten', set: parsed.set }
      }
      const { code, message, legible } = parsed
      const { uid, generation = 0 } = current.metadata
      const before = accepted.get(uid)
      // To pause it is a change that needs nothing else to be readable.
      const paused = (current.spec as { readonly paused?: unknown } | undefined)?.paused === true
      if (before !== undefined) {
        const refusal = { code, message: `${message}; until then the spec before it stays in force` }
        return { type: 'asBefore', set: { ...before, generation, paused }, refusal }
      }
      const { replicas = 0, hotbackups = 0, coldbackups = 0 } = current.status ?? {}
      if (legible === undefined || replicas + hotbackups + coldbackups === 0)
        return { type: 'nothing', refusal: { code, message } }
      const refusal = {
        code,
        message: `${message}; until then backups take over from primaries, and no pod is made`,
      }
      // Of a number that cannot be read the default may be fewer than there are.
      const set = { ...legible, replicas: Math.max(legible.replicas, replicas), paused }
      return { type: 'takeovers', set, refusal }
    },
    forget: uid => accepted.delete(uid),
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
