/**
 * The keys by which the sentinels of two nodes recognize each other's heartbeats. Agents derive them from the keys of their
 * identities, without a message.
 */
import { createPrivateKey, createPublicKey, diffieHellman, hkdfSync, type KeyObject } from 'node:crypto'
import { fingerprintOf } from './certificate.ts'

export interface HeartbeatKey {
  /** Public key of the identity (SubjectPublicKeyInfo), hex, for the report of this node. */
  readonly publicKey: string
  /**
   * Returns the key that this node shares with a peer, 64 hex digits; undefined if the report of the peer has another key
   * than its fingerprint says. Never log it.
   */
  with(peer: NodeKey): string | undefined
}

/** A node, its public key, and the fingerprint of its identity, as in its report. */
export interface NodeKey {
  readonly node: string
  readonly key: string
  /** Admission lets no agent change it: the token of an agent alone gives no voice as its node. */
  readonly fingerprint: string
}

export function createHeartbeatKey(node: string, identityKey: string): HeartbeatKey {
  const ours = createPrivateKey(identityKey)
  const publicKey = createPublicKey(ours).export({ type: 'spki', format: 'der' }).toString('hex')
  return {
    publicKey,
    with(peer) {
      const theirs = publicKeyOf(peer)
      if (theirs === undefined) return undefined
      const secret = diffieHellman({ privateKey: ours, publicKey: theirs })
      // A key is for these two nodes only, and for both directions.
      const ends = [`${node} ${publicKey}`, `${peer.node} ${peer.key}`].sort()
      const about = ['understudy heartbeat key', ...ends].join(' ')
      // The length of `info` is limited, that of the salt is not.
      return Buffer.from(hkdfSync('sha256', secret, about, 'heartbeats', 32)).toString('hex')
    },
  }
}

function publicKeyOf({ key, fingerprint }: NodeKey): KeyObject | undefined {
  if (!/^(?:[0-9a-f]{2}){1,128}$/.test(key)) return undefined
  try {
    const publicKey = createPublicKey({ key: Buffer.from(key, 'hex'), format: 'der', type: 'spki' })
    const isP256 = publicKey.asymmetricKeyDetails?.namedCurve === 'prime256v1'
    return isP256 && fingerprintOf(publicKey) === fingerprint ? publicKey : undefined
  } catch {
    // Not a key.
    return undefined
  }
}
