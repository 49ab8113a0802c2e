/** TLS 1.3 between two who know each other by their keys. No authority vouches for anybody. */
import type { ConnectionOptions, TLSSocket, TlsOptions } from 'node:tls'
import { fingerprintOf } from './certificate.ts'
import type { Identity } from './identity.ts'

/**
 * For both ends. `rejectUnauthorized` is about certificate chains, of which there are none. That the other end HAS the
 * key of its certificate is proven in every handshake all the same; WHICH key it must be is for `peerFingerprint`.
 */
export function pinnedTls({ key, cert }: Pick<Identity, 'key' | 'cert'>) {
  return {
    key,
    cert,
    minVersion: 'TLSv1.3',
    rejectUnauthorized: false,
    ALPNProtocols: ['h2'],
  } as const satisfies TlsOptions & ConnectionOptions
}

/** The fingerprint of the key that the other end has proven to have; undefined when it has shown none. */
export function peerFingerprint(socket: TLSSocket): string | undefined {
  const certificate = socket.getPeerX509Certificate()
  return certificate === undefined ? undefined : fingerprintOf(certificate.publicKey)
}
