/**
 * The grant of a slot, in its Lease: the understudy that may take the slot without the operator, once the primary has died.
 * docs/adr/0129-heir-grant.md has the rule.
 */
import { type FenceOwner, formatFenceOwner } from './fence.ts'
import { readAnnotation } from './json-annotation.ts'
import { prefix } from './labels.ts'
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
  /**
   * The heir's agent tells the API server that the heir resumes, before it does. So the operator can end the grant alone: by
   * `grantOverAnnotation` on a pod of which no agent has told that yet.
   */
  readonly isAnnounced?: true
  /** Node of the primary of the epoch before, once the heir has the slot: its agent may have used the grant, or not. */
  readonly source?: string
}

/**
 * Name of the annotation with which the operator ends grants of one incarnation of a slot, on the pod of an heir: its value is the
 * last number that is over. The operator writes it only as long as no condition of the pod says that it resumes or serves, and the
 * agent reads it in the answer to the write that says so: one of the two comes first.
 */
export const grantOverAnnotation = (incarnation: string): string => `${prefix}grant-over-${incarnation}`

/** Up to this number the operator has ended the grants of this incarnation, on the pod with these annotations. */
export function grantsOver(
  annotations: Readonly<Record<string, string>> | undefined,
  incarnation: string,
): number {
  const number = Number(annotations?.[grantOverAnnotation(incarnation)])
  return isNumber(number) ? number : 0
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

/** An agent that does not know announced grants reads none, instead of one that it would use untold. */
const formats = { untold: 1, announced: 2 } as const

/** Characters. */
const longest = 1_024

export const formatGrant = (
  { number, heir, isRevoked, isAnnounced, source }: Grant,
  of: FenceOwner,
): string =>
  JSON.stringify({
    ...{ v: isAnnounced ? formats.announced : formats.untold, of: formatFenceOwner(of), number },
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
  const isAnnounced = given?.['v'] === formats.announced
  if (given === undefined || !(isAnnounced || given['v'] === formats.untold)) return undefined
  const { number, heir, isRevoked = false, source } = given
  if (!isNumber(number) || typeof isRevoked !== 'boolean') return undefined
  const named = heir === undefined ? undefined : heirIn(heir)
  if (heir !== undefined && named === undefined) return undefined
  const isOver = given['of'] !== formatFenceOwner(of)
  return {
    ...{ number, isRevoked: named !== undefined && (isRevoked || isOver) },
    ...(named && { heir: named }),
    ...(named && isAnnounced && { isAnnounced }),
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
