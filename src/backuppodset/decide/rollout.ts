import type { Random } from '../../kube/random.ts'
import { isGated, type LostPrimary, lastEpoch } from '../../slot/decide/snapshot.ts'
import type { Action } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { podNamer } from './name.ts'
import { partitionPrimaries, roleIn } from './primary-sets.ts'
import { mayRoll, withState } from './pulled.ts'
import { type Policies, type Purpose, rankForDeletion, readinessForConversion, take } from './select.ts'
import { remove } from './tools.ts'

/**
 * Returns the next step from an old template to the new one, for a set whose numbers are exact: cold backups, then hot
 * ones, then primaries by promotion, one ready pod at a time. Old pods that do not serve are deleted at once, so that a
 * template that never becomes ready can be taken back.
 */
export function rollout(s: Snapshot, random: Random, policies: Policies): Action[] {
  if (s.set.updateStrategy !== 'RollingUpdate') return []
  const { isOld, ofKind, next } = wordsOf(s, random, policies)
  const backups = rollBackups(s, random, policies)
  if (backups !== undefined) return backups

  const { primaries, superseded } = partitionPrimaries(ofKind('primary'))
  const failed = (pod: PodView) => isOld(pod) && !pod.ready
  // A successor is on its way: wait for it, unless its own template has been taken back.
  const awaited = superseded.some(({ slot }) => !primaries.some(pod => pod.slot === slot && failed(pod)))
  if (awaited || !primaries.every(pod => pod.ready || failed(pod))) return []
  const [loser] = next(primaries.filter(isOld), 'replicasToUnallocated')
  if (loser?.slot === undefined) return []
  // No later epoch is left for a successor.
  if (loser.epoch >= lastEpoch) return [remove(loser, 'Outdated')]
  const replaces: LostPrimary = {
    name: loser.name,
    slot: loser.slot,
    epoch: loser.epoch,
    reason: 'Replaced',
    seenAt: s.monotonicNow,
  }
  const role = roleIn(s, loser.slot, replaces)
  if (!mayRoll(s, loser, role)) return []
  const [successor] = [
    ...next(ofKind('hotbackup'), 'hotbackupToReplicas', 'convert'),
    ...next(ofKind('coldbackup'), 'coldbackupToReplicas', 'convert'),
  ]
  // A later pass deletes the loser, when its successor serves: `partitionPrimaries` recognizes it by its older epoch.
  return successor === undefined
    ? [
        withState(s, {
          type: 'create',
          kind: 'primary',
          name: podNamer(s, random)(),
          strategy: s.set.strategy.unallocatedToReplicas,
          role,
        }),
      ]
    : [withState(s, { type: 'convert', pod: successor, to: 'primary', role, wake: isGated(successor) })]
}

/**
 * Returns the next step for backups, cold ones first; undefined if all are of the new template and ready for their job.
 * @param mayGo true if a backup that can do its job may be deleted now.
 * @param others backups that the set does not count.
 */
export function rollBackups(
  s: Snapshot,
  random: Random,
  policies: Policies,
  mayGo: () => boolean = () => true,
  others: readonly PodView[] = [],
): Action[] | undefined {
  const { isOld, ofKind: all, next } = wordsOf(s, random, policies)
  const ofKind = (kind: PodView['kind']) => all(kind).filter(pod => !others.includes(pod))
  for (const [pods, serves, policy] of [
    [ofKind('coldbackup'), (pod: PodView) => pod.gate === 'waiting', 'coldbackupToUnallocated'],
    [ofKind('hotbackup'), (pod: PodView) => pod.ready, 'hotbackupToUnallocated'],
  ] as const) {
    const old = pods.filter(isOld)
    const idle = old.filter(pod => !serves(pod))
    if (idle.length > 0) return idle.map(pod => remove(pod, 'Outdated'))
    if (!pods.every(serves)) return []
    if (old.length > 0) return mayGo() ? next(old, policy).map(pod => remove(pod, 'Outdated')) : []
  }
  return undefined
}

function wordsOf(s: Snapshot, random: Random, policies: Policies) {
  return {
    isOld: (pod: PodView) => pod.templateHash !== s.templateHash,
    ofKind: (kind: PodView['kind']) => s.pods.filter(pod => pod.kind === kind),
    next: (pods: readonly PodView[], policy: keyof typeof s.set.strategy, purpose: Purpose = 'delete') =>
      take(
        pods,
        1,
        purpose === 'delete' ? rankForDeletion : readinessForConversion,
        policies[s.set.strategy[policy]],
        { purpose, peers: s.pods, random },
      ),
  }
}
