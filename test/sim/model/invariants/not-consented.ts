/** NotConsented: a slot is handed over while its primary runs. */
import { apiServerVoter, isApiServer, partsOf, type Voter } from '../../../../src/api/fence.ts'
import { nodeReports } from '../../../../src/api/node-report.ts'
import type { NumberedSlotLease } from '../../../../src/api/numbered-slot.ts'
import { slotName } from '../../../../src/checkpoint/manifest.ts'
import { keyOf } from '../../../../src/kube/object.ts'
import { isFenced } from '../../../../src/slot/decide/fence/fenced.ts'
import { voteIn } from '../../../../src/slot/observe/reports.ts'
import type { Cluster } from '../cluster.ts'
import { type Ground, onLeases } from './ground.ts'
import type { SavedGenesis } from './impostor-saved.ts'
import { running } from './running.ts'

/** A node that is cut off for longer is lost, so its consent is not needed, ms. */
const longCutMs = 25_000

/** A takeover by the pod of a requested handover counts too: the request itself must not make a primary look failed. */
export function notConsented(ground: Ground, saved: SavedGenesis): void {
  const { cluster, violate, health, fates } = ground
  onLeases(ground, ({ object, before, lease, isOfSet }) => {
    if (!isOfSet || before === undefined || before.epoch >= lease.epoch) return
    const isHandover = lease.handedOverBy === before.holder.uid
    if (!isHandover && (before.handover !== lease.holder.uid || isStatedSilent(cluster, before))) return
    // The app there may be a fresh one, started in place of a dead one.
    const own = saved.get(`${slotName(before)} app`)
    const goesOn = running(cluster).find(
      ({ node, pod, app }) =>
        pod.uid === before.holder.uid &&
        app.memory.genesis === own &&
        (isHandover || (!fates.isBroken(pod.uid) && health.cutForMs(node) <= longCutMs)),
    )
    if (goesOn !== undefined)
      violate(
        'NotConsented',
        `${keyOf(object)} ${lease.epoch}`,
        `slot ${lease.slot} is handed over while ${goesOn.pod.name} runs`,
      )
  })
}

/**
 * True if the voters of the primary have made the statements that a takeover needs. Such a primary need not consent. If its
 * sentinel is away as well, nothing stops the app, and the kernel drops its packets. TwoServe and ServesOn check that.
 */
function isStatedSilent({ nodes, server }: Cluster, lease: NumberedSlotLease): boolean {
  const { fence, node = '' } = lease
  if (fence?.isArmed !== true) return false
  const report = server.find(nodeReports, { name: node })
  const isSilent = (voter: Voter): boolean => {
    if (isApiServer(voter)) return report === undefined || apiServerVoter(voteIn(report)) !== voter
    const { node: name, run } = partsOf(voter)
    const voting = nodes.find(({ machine }) => machine.name === name)?.machine.voting
    // A sentinel of another run answers this term no more.
    return voting?.run !== run || (voting.votes.get(slotName(lease))?.stated ?? 0) >= fence.term
  }
  return isFenced(fence, new Set(fence.voters.filter(isSilent)))
}
