/** The requests of an agent of the model to other machines, and to the apps on its own. */
import type { PeerClient } from '../../../src/agent/transfer/client.ts'
import { AgentError } from '../../../src/api/agent-errors.ts'
import type { GoAnswer } from '../../../src/api/grant.ts'
import type { SlotKey } from '../../../src/api/slot-key.ts'
import type { SlotLease } from '../../../src/api/slot-lease.ts'
import { slotName } from '../../../src/checkpoint/manifest.ts'
import type { GenerationStore } from '../../../src/checkpoint/store.ts'
import type { Clock } from '../../../src/kube/clock.ts'
import type { Probe } from '../../../src/probe/probe.ts'
import { originFault } from '../../../src/slot/decide/origin.ts'
import type { AgentOptions } from './agent-options.ts'
import { answers } from './world.ts'

const pullMs = 40

/** Pulls as the client for peers does: waits for a newer generation of a machine that it can reach. */
export const pullerOf =
  (
    { machine, party, time, random, reach }: AgentOptions,
    clock: Clock,
    store: GenerationStore,
    leaseOf: (slot: SlotKey) => SlotLease | undefined,
  ): PeerClient['pull'] =>
  async (slot, peer, epoch, given) => {
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
  }

/** How long the message of a grant, or its answer, is on its way now and then, ms. */
const slowMs = 2_500

/**
 * Uses grants as the client for peers does. Messages and answers are lost or late now and then, and some messages are
 * processed twice. A message to an agent that has ended meanwhile is lost.
 */
export const goerOf =
  ({ machine, party, time, random, reach }: AgentOptions, clock: Clock): PeerClient['go'] =>
  async (peer, request, given, onSend) => {
    await clock.sleep(1 + random.next() * 4, given)
    const there = reach(peer.address)
    const agent = there?.agent
    if (agent === undefined || !there?.answers || peer.fingerprint !== there.machine.fingerprint)
      throw new AgentError('PeerUnreachable', peer.address)
    given.throwIfAborted()
    onSend()
    const delay = () => (random.next() < 0.1 ? random.next() * slowMs : random.next() * 10)
    const answered = Promise.withResolvers<GoAnswer>()
    const deliver = () =>
      time.after(agent.party, delay(), () => {
        agent.agree(machine.name, request).then(
          answer => {
            if (random.next() < 0.9) time.after(party, delay(), () => answered.resolve(answer))
          },
          () => undefined,
        )
      })
    if (random.next() < 0.95) deliver()
    if (random.next() < 0.1) deliver()
    const silent = clock.sleep(5_000, given).then(() => {
      throw new AgentError('PeerSilent', peer.address)
    })
    return await Promise.race([answered.promise, silent])
  }

/** Asks an app as the network would. Some apps exit a little after a probe. */
export const probeOf =
  ({ machine, time, exits }: AgentOptions, clock: Clock): Probe =>
  async (_, { address }, { signal: given }) => {
    await clock.sleep(1, given)
    const pod = [...machine.pods.values()].find(({ ip, killed }) => ip === address && !killed)
    const container = pod?.containers.find(({ name, up }) => name === 'app' && up)
    const app = container?.app
    if (app !== undefined && answers(app, time.now())) return { outcome: 'success' }
    if (pod !== undefined && app?.exitsMs !== undefined)
      time.after(machine.kernel, app.exitsMs, () => exits(pod, app))
    return { outcome: 'failure', message: 'no answer' }
  }
