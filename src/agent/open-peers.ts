import { networkInterfaces } from 'node:os'
import { isSameSlot, type SlotKey } from '../api/slot-key.ts'
import { applyDelta, encodeDelta } from '../checkpoint/delta.ts'
import { type Manifest, slotName } from '../checkpoint/manifest.ts'
import type { CopyPages } from '../checkpoint/page-program.ts'
import { signerOf } from '../checkpoint/signature.ts'
import type { GenerationStore } from '../checkpoint/store.ts'
import { systemClock as clock } from '../kube/clock.ts'
import { keyOfRef } from '../kube/object.ts'
import { systemRandom as random } from '../kube/random.ts'
import { isNamed, originFault } from '../slot/decide/origin.ts'
import { viewOf } from './observe/pod-view.ts'
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

export interface PeerEvents {
  readonly agree: PeerServerOptions['agree']
  /** Called when a generation has arrived, also if no task waits for it any more. */
  readonly stored: (slot: SlotKey) => void
}

/** Reports and Leases say which nodes may connect, and what they may read. @throws Error if the port is in use. */
export async function openPeers(
  { options, identity, caches, log }: Pick<Resources, 'options' | 'identity' | 'caches' | 'log'>,
  { store, copyPages }: { readonly store: GenerationStore; readonly copyPages: CopyPages },
  metrics: Pick<AgentMetrics, 'shipped'>,
  { agree, stored }: PeerEvents,
): Promise<Peers> {
  const { pods, reports } = caches.stores
  const onBuffer = collectBuffers()
  const isLeaving = ({ slot: { namespace }, source }: Manifest): boolean => {
    const pod = pods.get(keyOfRef({ namespace, name: source.pod }))
    if (pod?.metadata.uid !== source.podUid) return false
    const heldEnd = viewOf(pod, undefined)?.heldEnd
    // A pod that stays for longer, as one with a finalizer does, keeps its memory from no node.
    return heldEnd !== undefined && clock.now() < heldEnd.until
  }
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
      const newest = store.latest(slot)?.manifest
      if (lease === undefined) return false
      return isLater(reader, lease, newest, reportOf, newest !== undefined && isLeaving(newest))
    },
  })
  const addresses = Object.values(networkInterfaces()).flatMap(each => each ?? [])
  const isOurs = addresses.some(({ address }) => address === options.address)
  const client = createPeerClient({
    // Peers accept connections from the address in our report.
    localAddress: isOurs ? options.address : undefined,
    ...{ identity, store, clock, random, log },
    apply: (stream, base, draft, options) =>
      applyDelta(stream, base, draft, { ...options, onBuffer, copyPages }),
    originFault: manifest =>
      originFault({ ...manifest, signer: signerOf(manifest) }, caches.leaseOf(manifest.slot)),
    onReceived(received) {
      metrics.shipped(received)
      stored(received.slot)
    },
  })
  return {
    ...{ client, server },
    async close() {
      client.close()
      await server.close()
    },
  }
}
