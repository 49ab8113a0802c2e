import { networkInterfaces } from 'node:os'
import { isSameSlot } from '../api/slot-key.ts'
import { applyDelta, encodeDelta } from '../checkpoint/delta.ts'
import { slotName } from '../checkpoint/manifest.ts'
import { signerOf } from '../checkpoint/signature.ts'
import type { GenerationStore } from '../checkpoint/store.ts'
import { systemClock as clock } from '../kube/clock.ts'
import { systemRandom as random } from '../kube/random.ts'
import { isNamed, originFault } from '../slot/decide/origin.ts'
import type { AgentMetrics } from './report/metrics.ts'
import type { Resources } from './resources.ts'
import { createPeerClient, type PeerClient } from './transfer/client.ts'
import { collectBuffers } from './transfer/gc-flags.ts'
import { isPeerAddress, nodeBehind } from './transfer/known-peers.ts'
import { isLater } from './transfer/precedence.ts'
import { createPeerServer, type PeerServer, type PeerServerOptions } from './transfer/server.ts'

/** Exchanges generations with the agents of other nodes. */
export interface Peers {
  readonly client: PeerClient
  readonly server: PeerServer
  close(): Promise<void>
}

/** Reports and Leases say which nodes may connect, and what they may read. @throws Error if the port is in use. */
export async function openPeers(
  { options, identity, caches, log }: Pick<Resources, 'options' | 'identity' | 'caches' | 'log'>,
  store: GenerationStore,
  metrics: Pick<AgentMetrics, 'shipped'>,
  agree: PeerServerOptions['agree'],
): Promise<Peers> {
  const { reports } = caches.stores
  const onBuffer = collectBuffers()
  const server = await createPeerServer({
    ...{ identity, port: options.peerPort, store, clock, log },
    encode: (base, next, cancel) => encodeDelta(base, next, { ...cancel, onBuffer }),
    nodeOf(fingerprint, address) {
      const node = nodeBehind(reports.list(), { fingerprint, address })
      return node === options.node ? undefined : node
    },
    ...(agree && { agree }),
    mayConnect: address => isPeerAddress(reports.list(), address),
    mayRead(reader, slot) {
      const lease = caches.leaseOf(slot)
      const isOf = lease !== undefined && slotName(lease) === slotName(slot)
      // A node that is to run the primary may have to fetch its memory.
      return isOf && isNamed(lease, reader)
    },
    isLater(reader, slot) {
      const lease = caches.leaseOf(slot)
      const reportOf = (node: string) => reports.get(node)?.status?.slots.find(said => isSameSlot(said, slot))
      return lease !== undefined && isLater(reader, lease, store.latest(slot)?.manifest, reportOf)
    },
  })
  const addresses = Object.values(networkInterfaces()).flatMap(each => each ?? [])
  const isOurs = addresses.some(({ address }) => address === options.address)
  const client = createPeerClient({
    // Peers accept connections from the address in our report.
    localAddress: isOurs ? options.address : undefined,
    ...{ identity, store, clock, random, log },
    apply: (stream, base, draft, options) => applyDelta(stream, base, draft, { ...options, onBuffer }),
    originFault: manifest =>
      originFault({ ...manifest, signer: signerOf(manifest) }, caches.leaseOf(manifest.slot)),
    onReceived: metrics.shipped,
  })
  return {
    ...{ client, server },
    async close() {
      client.close()
      await server.close()
    },
  }
}
