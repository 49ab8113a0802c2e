/** Which sets a change of any object concerns, when their passes are due, and how urgent they are. */

import { type BackupPodSet, backupPodSets } from '../api/backuppodset.ts'
import type { Migration } from '../api/migration.ts'
import type { NodeReport } from '../api/node-report.ts'
import { isOutOfService } from '../api/out-of-service.ts'
import { kindLabelOf } from '../api/pod-kind.ts'
import { setsNamedBy } from '../api/set-label.ts'
import { type KubeObject, keyOf } from '../kube/object.ts'
import { controllersIn } from '../kube/owner.ts'
import type { AddOptions } from '../kube/queue.ts'
import type { Namespace, Node, Pod } from '../kube/resources.ts'
import type { Change, Store } from '../kube/store.ts'
import { setsIn, setsNamedIn, votesIn } from '../slot/observe/reports.ts'
import { isDeath } from './lost-primaries.ts'

/** The arguments of `Queue.add`: a set's key, and when and how urgently its pass is due. */
export type Trigger = readonly [key: string, options?: AddOptions]

type Sets = Pick<Store<BackupPodSet>, 'list'>

/** Delay before a pass looks at news of generations, so that it handles several at once. */
export const progressMs = 2_000
/** Priority of sets that lost a primary over sets that only have to be looked at. */
export const urgent = 10

export const triggers = {
  // Agents stop the primaries of a deleted set at once until they know that it is deleted.
  set: ({ type, object }: Change<BackupPodSet>): readonly Trigger[] => {
    const isEnding = type === 'deleted' || object.metadata.deletionTimestamp !== undefined
    return [[keyOf(object), { priority: isEnding ? urgent : 0 }]]
  },
  pod: (change: Change<Pod>): readonly Trigger[] =>
    [...setsOf(change)].map(key => [key, { priority: isLoss(change) ? urgent : 0 }]),
  /** A change of an object that belongs to the set which its label names. */
  labelled: ({ object }: Change<KubeObject>): readonly Trigger[] => setsNamedBy(object).map(key => [key]),
  /** A change of whether memory is allowed in a namespace. */
  permission: ({ object }: Change<Namespace>, sets: Sets): readonly Trigger[] =>
    sets
      .list()
      .filter(({ metadata }) => metadata.namespace === object.metadata.name)
      .map(set => [keyOf(set)]),
  /** A node has gone out of service, or come back. */
  node: ({ object, old }: Change<Node>, sets: Sets): readonly Trigger[] =>
    isOutOfService(object.spec?.taints) === isOutOfService(old?.spec?.taints)
      ? []
      : withMemory(sets).map(([key]) => [key, { priority: urgent }]),
  /** A Migration of one of its pods begins, continues, or is called off. */
  migration: ({ object, old }: Change<Migration>): readonly Trigger[] =>
    [object, old].flatMap((each): Trigger[] => {
      const set = each?.status?.source?.set
      return set === undefined ? [] : [[`${object.metadata.namespace}/${set}`]]
    }),
  report: (change: Change<NodeReport>, sets: Sets): readonly Trigger[] => [
    ...[...votesIn(change)].map((key): Trigger => [key, { priority: urgent }]),
    ...[...setsIn(change)].map(
      ([key, { urgent: isUrgent }]): Trigger => [key, isUrgent ? {} : { afterMs: progressMs }],
    ),
    ...(isAsAble(change) ? [] : withMemory(sets)),
    ...(isDiskAsBefore(change) ? [] : slotsIn(change)),
  ],
} as const

/** Returns the sets that a pod's change may concern: those named by its label and by its controller, now or before. */
export function setsOf(change: Change<Pod>): ReadonlySet<string> {
  const { object, old } = change
  return new Set([
    ...setsNamedBy(object),
    ...controllersIn(change, backupPodSets),
    ...(old ? setsNamedBy(old) : []),
  ])
}

const isLoss = (change: Change<Pod>): boolean =>
  isDeath(change) ||
  (kindLabelOf(change.old) === 'primary' &&
    (change.type === 'deleted' || change.object.metadata.deletionTimestamp !== undefined))

const isAsAble = ({ type, object, old }: Change<NodeReport>): boolean =>
  old?.status?.ready === object.status?.ready &&
  old?.status?.slotsKnown === object.status?.slotsKnown &&
  type !== 'deleted'

/** The capabilities of a node concern every set that wants memory. */
const withMemory = (sets: Sets): readonly Trigger[] =>
  sets.list().flatMap((set): Trigger[] => (set.spec.checkpoint ? [[keyOf(set)]] : []))

const isDiskAsBefore = ({ object, old }: Change<NodeReport>): boolean =>
  old?.status?.disk?.reason === object.status?.disk?.reason

const slotsIn = ({ object }: Change<NodeReport>): readonly Trigger[] =>
  [...setsNamedIn(object)].map(key => [key, { afterMs: progressMs }])
