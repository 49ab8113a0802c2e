/**
 * Rules for sets whose application's state is pulled over HTTP: which state a successor gets, and which pod may
 * succeed.
 */

import type { Role } from '../../slot/decide/actions.ts'
import type { StateRef } from '../../slot/decide/pulled-view.ts'
import type { LostPrimary } from '../../slot/decide/snapshot.ts'
import type { Action } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { roleGiver, roleIn } from './primary-sets.ts'

type Taking = Extract<Action, { type: 'convert' | 'create' }>

/** After so many refusals of the state, by new pods too, the slot begins with an empty state. */
const mostRefusals = 3

/** True if the pod has not refused a state lately; always true in sets without pulled state. */
export const acceptsState = (pod: PodView): boolean => pod.pulled?.refused === undefined

/**
 * Returns the state of the primary that this role replaces, and never that of another primary with the same slot
 * number.
 */
export function stateFor(s: Snapshot, role: Role | undefined): StateRef | undefined {
  const held = role && s.pulled?.slots.get(role.slot)
  if (held === undefined || role?.replaces === undefined || held.holder.name !== role.replaces.name)
    return undefined
  const { incarnation, generation, bytes, takenAt } = held
  return { incarnation, generation, bytes, takenAt }
}

/** Adds the state that a successor gets before any client reaches it, or marks that the role starts empty. */
export function withState<A extends Action>(s: Snapshot, action: A): A {
  if (s.pulled === undefined || !isTaking(action) || action.role?.replaces === undefined) return action
  const state = stateFor(s, action.role)
  const isWorn =
    action.type === 'create' && (s.pulled.slots.get(action.role.slot)?.refusals ?? 0) >= mostRefusals
  if (state !== undefined && !isWorn) return { ...action, state }
  return { ...action, role: { ...action.role, startsEmpty: state === undefined ? 'NoState' : 'Refused' } }
}

const isTaking = (action: Action): action is Taking =>
  (action.type === 'convert' && action.to === 'primary') ||
  (action.type === 'create' && action.kind === 'primary')

/**
 * Like `roleGiver`, but lost slots come before free ones, however low their numbers: the successor of a primary takes
 * its slot, with the address and the state that belong to it.
 */
export function lostFirst(s: Snapshot, taken: Iterable<number>, failing: readonly LostPrimary[]): () => Role {
  const used = new Set(taken)
  const lost = new Map([...s.lost, ...failing.map(each => [each.slot, each] as const)])
  const open = [...lost.values()].filter(({ slot }) => !used.has(slot)).sort((a, b) => a.slot - b.slot)
  const otherwise = roleGiver(s, [...used, ...open.map(({ slot }) => slot)], failing)
  return () => {
    const next = open.shift()
    return next === undefined ? otherwise() : roleIn(s, next.slot, next)
  }
}

/** Gives primaries whose app was restarted in place their state back. They keep their pods if no backup is better. */
export function restores(s: Snapshot, primaries: readonly PodView[]): Action[] {
  return primaries.flatMap((pod): Action[] => {
    const held = pod.slot === undefined ? undefined : s.pulled?.slots.get(pod.slot)
    if (held === undefined || pod.waking || !pod.pulled?.emptied || !pod.pulled.running || !acceptsState(pod))
      return []
    const { incarnation, generation, bytes, takenAt } = held
    return [
      { type: 'restore', pod, slot: pod.slot ?? -1, state: { incarnation, generation, bytes, takenAt } },
    ]
  })
}

/** A roll passes the state on, so it waits for a state, and until no pod has a recent refusal of one. */
export const mayRoll = (s: Snapshot, loser: PodView, role: Role): boolean =>
  s.pulled === undefined ||
  (stateFor(s, role) !== undefined && s.pods.every(acceptsState) && !loser.pulled?.emptied)
