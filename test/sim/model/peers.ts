/** Agents of other machines, over a network that may be cut. */
import type { PeerClient } from '../../../src/agent/peers/client.ts'
import { AgentError } from '../../../src/api/agent-errors.ts'
import type { SlotKey, SlotLease } from '../../../src/api/slot-lease.ts'
import { slotName } from '../../../src/checkpoint/manifest.ts'
import type { GenerationStore } from '../../../src/checkpoint/store.ts'
import { originFault } from '../../../src/succession/origin.ts'
import type { AgentOptions } from './agent-options.ts'

const pullMs = 40

export function createModelPeers(
  { machine, party, time, random, reach }: AgentOptions,
  store: GenerationStore,
  leaseOf: (slot: SlotKey) => SlotLease | undefined,
): Pick<PeerClient, 'pull'> {
  const clock = time.clockOf(party)
  return {
    async pull(slot, peer, epoch, given) {
      for (;;) {
        await clock.sleep(pullMs + random.next() * 40, given)
        const there = reach(peer.address)
        if (there === undefined || !there.answers || peer.fingerprint !== there.machine.fingerprint) {
          await clock.sleep(1_000, given)
          throw new AgentError('PeerUnreachable', peer.address)
        }
        const next = there.shelf.get(slotName(slot))?.[0]
        const ours = store.latest(slot)
        const isNewer =
          next !== undefined &&
          (ours === undefined ||
            next.manifest.epoch > ours.manifest.epoch ||
            (next.manifest.epoch === ours.manifest.epoch &&
              next.manifest.generation > ours.manifest.generation))
        if (!isNewer || next.manifest.epoch > epoch) {
          await there.news.wait(slotName(slot), party, time, given)
          continue
        }
        const fault = originFault({ ...next.manifest, signer: undefined }, leaseOf(slot))
        if (fault !== undefined) throw new AgentError('GenerationImplausible', fault)
        const draft = await store.begin(slot, next.manifest.generation)
        const image = there.machine.images.get(next.dir)
        if (image !== undefined) machine.images.set(draft.dir, image)
        const { files: _, bytes: __, ...manifest } = next.manifest
        return draft.commit(manifest)
      }
    },
  }
}
