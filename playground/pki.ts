import { generateKeyPairSync } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { run } from './exec.ts'

/** PEM files of one certificate and its key. */
export interface Certificate {
  readonly certPath: string
  readonly keyPath: string
}

export interface CertificateRequest {
  /** File name without extension. */
  readonly name: string
  readonly commonName: string
  /** Kubernetes reads a client certificate's organisations as the user's groups. */
  readonly organizations?: readonly string[]
  readonly usage: 'client' | 'server'
  /** Names and addresses of a server. */
  readonly hosts?: readonly string[]
}

/** A certificate authority in a directory: `ca.crt`, `ca.key` and the certificates it has issued. */
export interface Authority {
  readonly caPath: string
  issue(request: CertificateRequest): Promise<Certificate>
}

/** Days; longer than any playground lives. */
const DAYS = '3650'
const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

/**
 * Opens the authority in `dir` and creates it if it does not exist. `dir` must exist and be inaccessible to other
 * users.
 */
export async function openAuthority(dir: string, signal?: AbortSignal): Promise<Authority> {
  const caPath = join(dir, 'ca.crt')
  const caKey = join(dir, 'ca.key')
  const openssl = (args: readonly string[]): Promise<string> =>
    run(['openssl', 'req', '-x509', ...newKey, '-days', DAYS, ...args], { signal })
  const exists = await readFile(caPath).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false
      throw error
    },
  )
  if (!exists) {
    const extensions = [
      'basicConstraints=critical,CA:TRUE',
      'keyUsage=critical,keyCertSign,cRLSign,digitalSignature',
    ]
    await openssl([
      '-subj',
      '/CN=understudy-playground',
      ...addExtensions(extensions),
      '-keyout',
      caKey,
      '-out',
      caPath,
    ])
  }
  return {
    caPath,
    async issue(request) {
      const certificate = {
        certPath: join(dir, `${request.name}.crt`),
        keyPath: join(dir, `${request.name}.key`),
      }
      await openssl([
        ...['-CA', caPath, '-CAkey', caKey],
        ...['-subj', subject(request)],
        ...addExtensions(extensionsOf(request)),
        ...['-keyout', certificate.keyPath, '-out', certificate.certPath],
      ])
      return certificate
    },
  }
}

export function subject({ commonName, organizations = [] }: CertificateRequest): string {
  const escaped = (value: string): string => value.replace(/[\\/+]/g, match => `\\${match}`)
  return [...organizations.map(name => `/O=${escaped(name)}`), `/CN=${escaped(commonName)}`].join('')
}

export function extensionsOf({ usage, hosts = [] }: CertificateRequest): string[] {
  const names = hosts.map(host => `${isIP(host) === 0 ? 'DNS' : 'IP'}:${host}`)
  return [
    'basicConstraints=critical,CA:FALSE',
    'keyUsage=critical,digitalSignature',
    `extendedKeyUsage=${usage}Auth`,
    ...(names.length > 0 ? [`subjectAltName=${names.join(',')}`] : []),
  ]
}

function addExtensions(extensions: readonly string[]): string[] {
  return extensions.flatMap(extension => ['-addext', extension])
}

/** Writes the key pair that signs service account tokens. */
export async function writeServiceAccountKey(
  dir: string,
): Promise<{ privatePath: string; publicPath: string }> {
  const paths = {
    privatePath: join(dir, 'service-account.key'),
    publicPath: join(dir, 'service-account.pub'),
  }
  const { privateKey, publicKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'sec1', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  await writeFile(paths.privatePath, privateKey, { mode: 0o600 })
  await writeFile(paths.publicPath, publicKey)
  return paths
}
