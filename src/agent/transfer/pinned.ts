/** TLS 1.3 between two agents that know each other's keys, without a certificate authority. */
import type { ConnectionOptions, TLSSocket, TlsOptions } from 'node:tls'
import { fingerprintOf } from './certificate.ts'
import type { Identity } from './identity.ts'

/**
 * Returns the TLS options of both ends. `rejectUnauthorized` concerns certificate chains, which do not exist here.
 * Every handshake proves that the other end HAS the key of its certificate; `peerFingerprint` tells WHICH key that is.
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

/** Returns the fingerprint of the key that the other end has proven; undefined if it has shown none. */
export function peerFingerprint(socket: TLSSocket): string | undefined {
  const certificate = socket.getPeerX509Certificate()
  return certificate === undefined ? undefined : fingerprintOf(certificate.publicKey)
}
