/** The keys by which the sentinels of two nodes recognize each other's heartbeats. Agents derive them, without a message. */
import {
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  hkdfSync,
  type KeyObject,
  timingSafeEqual,
} from 'node:crypto'

export interface HeartbeatKey {
  /** X25519 public key, 64 hex digits, for the report of this node. */
  readonly publicKey: string
  /**
   * Returns the key that this node shares with a peer, 64 hex digits; undefined if the key in the report of the peer is
   * none. Never log it.
   */
  with(peer: NodeKey): string | undefined
}

/** A node, and its public key as in its report. */
export interface NodeKey {
  readonly node: string
  readonly key: string
}

const bytes = 32

/** Derives the key pair from the private key of the agent's identity, so that it needs no file of its own. */
export function createHeartbeatKey(node: string, identityKey: string): HeartbeatKey {
  const { d = '' } = createPrivateKey(identityKey).export({ format: 'jwk' })
  const ours = privateKeyOf(derive(Buffer.from(d, 'base64url'), 'understudy heartbeats'))
  const { x = '' } = createPublicKey(ours).export({ format: 'jwk' })
  const publicKey = Buffer.from(x, 'base64url').toString('hex')
  return {
    publicKey,
    with(peer) {
      const secret = secretOf(ours, peer.key)
      if (secret === undefined) return undefined
      // A key is for these two nodes only, and for both directions.
      const ends = [`${node} ${publicKey}`, `${peer.node} ${peer.key}`].sort()
      return derive(secret, ['understudy heartbeat key', ...ends].join(' ')).toString('hex')
    },
  }
}

function secretOf(ours: KeyObject, theirs: string): Buffer | undefined {
  if (!/^[0-9a-f]{64}$/.test(theirs)) return undefined
  const x = Buffer.from(theirs, 'hex').toString('base64url')
  try {
    const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x }, format: 'jwk' })
    const secret = diffieHellman({ privateKey: ours, publicKey })
    // With a point of low order, everybody knows the secret.
    return timingSafeEqual(secret, Buffer.alloc(bytes)) ? undefined : secret
  } catch {
    // OpenSSL refuses such points.
    return undefined
  }
}

const derive = (secret: Buffer, info: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, '', info, bytes))

/** PKCS #8 of an X25519 key is this and the 32 bytes of the key (RFC 8410). */
const prefix = Buffer.from('302e020100300506032b656e04220420', 'hex')

const privateKeyOf = (seed: Buffer): KeyObject =>
  createPrivateKey({ key: Buffer.concat([prefix, seed]), format: 'der', type: 'pkcs8' })
