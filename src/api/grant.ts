/**
 * The grant of a slot, in its Lease: the understudy that may take the slot without the operator, once the primary has died.
 * docs/adr/0129-heir-grant.md has the rule.
 */
import { type FenceOwner, formatFenceOwner } from './fence.ts'
import { readAnnotation } from './json-annotation.ts'
import type { SlotKey } from './slot-key.ts'
import { objectIn } from './unknown.ts'

/** The pod that a grant names, and its node. */
export interface GrantHeir {
  readonly uid: string
  readonly node: string
}

export interface Grant {
  /** Increases with each grant of an incarnation, also from one epoch to the next. */
  readonly number: number
  /** Absent: this number and all before it are over, and no pod has a grant. */
  readonly heir?: GrantHeir
  /** No agent may use it any more, but one may have used it before it read this. */
  readonly isRevoked: boolean
  /** Node of the primary of the epoch before, once the heir has the slot: its agent may have used the grant, or not. */
  readonly source?: string
}

/** The word of an agent about the grants of a slot, in its NodeReport. */
export interface GrantWord {
  /** This agent uses no grant up to this number from now on, and has used none of them, except `used`. */
  readonly closed: number
  /**
   * Node of the primary: the agent told the heir's agent to use this grant, and the message may have arrived. Node of the
   * heir: the agent has agreed, so the heir runs or will run.
   */
  readonly used?: number
}

/** The agent of a dead primary tells that of the heir to take the slot. */
export interface GoRequest {
  readonly slot: SlotKey
  /** That of the primary. */
  readonly epoch: number
  /** Number of the grant. */
  readonly number: number
  /** The heir. */
  readonly uid: string
  /** The newest memory on the node of the primary; its time is a wall clock, ms. */
  readonly atLeast?:
    | { readonly epoch: number; readonly generation: number; readonly takenAt: number }
    | undefined
}

/** `Refused`: now and for ever. `Later`: not yet. */
export type GoAnswer = 'Accepted' | 'Refused' | 'Later'

const format = 1

/** Characters. */
const longest = 1_024

export const formatGrant = ({ number, heir, isRevoked, source }: Grant, of: FenceOwner): string =>
  JSON.stringify({
    ...{ v: format, of: formatFenceOwner(of), number },
    ...(heir && { heir }),
    ...(isRevoked && { isRevoked }),
    ...(source !== undefined && { source }),
  })

/**
 * Parses the annotation; undefined if it is absent, of another format, or no grant. An operator of a version before
 * grants leaves the annotation of an earlier epoch in the Lease: then it is revoked.
 */
export function parseGrant(text: string | undefined, of: FenceOwner): Grant | undefined {
  const given = readAnnotation(text, longest)
  if (given?.['v'] !== format) return undefined
  const { number, heir, isRevoked = false, source } = given
  if (!isNumber(number) || typeof isRevoked !== 'boolean') return undefined
  const named = heir === undefined ? undefined : heirIn(heir)
  if (heir !== undefined && named === undefined) return undefined
  const isOver = given['of'] !== formatFenceOwner(of)
  return {
    ...{ number, isRevoked: named !== undefined && (isRevoked || isOver) },
    ...(named && { heir: named }),
    ...(isNode(source) && named && !isOver && { source }),
  }
}

function heirIn(given: unknown): GrantHeir | undefined {
  const { uid, node } = objectIn(given)
  if (typeof uid !== 'string' || !/^[A-Za-z0-9-]{1,64}$/.test(uid)) return undefined
  return isNode(node) ? { uid, node } : undefined
}

const isNode = (given: unknown): given is string =>
  typeof given === 'string' && /^[A-Za-z0-9][-A-Za-z0-9.]{0,252}$/.test(given)

const isNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0
