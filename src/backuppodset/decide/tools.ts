import type { Strategy } from '../../api/backuppodset.ts'
import type { PodKind } from '../../api/labels.ts'
import type { Random } from '../../kube/random.ts'
import type { Role } from '../../slot/decide/actions.ts'
import type { Action, DeleteReason } from '../plan.ts'
import type { Revision } from '../revisions/revision.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { podNamer } from './name.ts'
import { revisionGiver } from './revisions.ts'
import { type Policies, type Purpose, rankForDeletion, readinessForConversion, take } from './select.ts'

/** Operations that the rules of all tiers use, for one plan. */
export interface Tools {
  /** Chooses pods to convert, except pods that are being woken. */
  converting(pods: readonly PodView[], count: number, policy: Strategy): PodView[]
  /**
   * Chooses surplus pods: first pods that leave in any case, those among them first that are not on stage, then pods that
   * are being woken and do not serve yet.
   */
  leaving(
    pods: readonly PodView[],
    count: number,
    policy: Strategy,
    isLeaving?: (pod: PodView) => boolean,
  ): PodView[]
  /** Deletes surplus pods. */
  surplus(pods: readonly PodView[], count: number, policy: Strategy): DeleteAction[]
  creating(kind: PodKind, refill: Strategy, role?: () => Role): Extract<Action, { type: 'create' }>
}

export function toolsOf(s: Snapshot, random: Random, policies: Policies): Tools {
  const newName = podNamer(s, random)
  const revisionOf = revisionGiver(s)
  const pick = (
    candidates: readonly PodView[],
    count: number,
    rank: (pod: PodView) => number,
    policy: Strategy,
    purpose: Purpose,
  ) => take(candidates, count, rank, policies[policy], { purpose, peers: s.pods, random })
  const leaving: Tools['leaving'] = (pods, count, policy, isLeaving = () => false) =>
    pick(
      pods,
      count,
      pod =>
        isLeaving(pod)
          ? first - Number(pod.stage?.promoting === true)
          : pod.waking && !pod.ready
            ? second
            : rankForDeletion(pod),
      policy,
      'delete',
    )
  return {
    converting: (pods, count, policy) =>
      pick(
        pods.filter(pod => !pod.waking),
        count,
        readinessForConversion,
        policy,
        'convert',
      ),
    leaving,
    surplus: (pods, count, policy) => removed(leaving(pods, count, policy)),
    creating: (kind, refill, role) => ({
      type: 'create',
      kind,
      name: newName(),
      strategy: s.isNew ? s.set.strategy.init : refill,
      role: role?.(),
      ...optional(revisionOf(kind)),
    }),
  }
}

const optional = (revision: Revision | undefined) => (revision === undefined ? {} : { revision })

/** A pod whose wake-up is in progress is left alone until that ends: no other pod is deleted in its place. */
export const removed = (leaving: readonly PodView[], reason: DeleteReason = 'Surplus'): DeleteAction[] =>
  leaving.filter(pod => !pod.waking).map(pod => remove(pod, reason))

/** These rank before all others. */
const [first, second] = [-(2 ** 40), -(2 ** 39)]

export type DeleteAction = Extract<Action, { type: 'delete' }>

export const remove = (pod: PodView, reason: DeleteReason): DeleteAction => ({ type: 'delete', pod, reason })

export const goes = (actions: readonly Action[], pod: PodView): boolean =>
  actions.some(action => action.type === 'delete' && action.pod === pod)

/** A converted pod waits at its gate again if its sandbox was recreated, for example after a reboot of its node. */
export const rewakes = (pods: readonly PodView[]): Action[] =>
  pods.filter(pod => pod.gate === 'waiting' && !pod.waking).map(pod => ({ type: 'wake', pod }))
