/** The identity of this node's agent: a key that stays on the node and outlives the agent's pod. */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { constants, link, mkdir, open, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type Random, systemRandom } from '../../kube/random.ts'
import { certificateFor, fingerprintOf } from './certificate.ts'

export interface Identity {
  /** Private key, PEM (PKCS #8). Never log it. */
  readonly key: string
  /** Self-signed certificate, PEM. */
  readonly cert: string
  /** SHA-256 of the public key (SubjectPublicKeyInfo), 64 hex digits: peers identify this agent by it. */
  readonly fingerprint: string
  /** `replaced`: the old key was not readable, or other users could read it. */
  readonly origin: 'kept' | 'made' | 'replaced'
}

const fileName = 'peer-key.pem'

/**
 * Loads the key in `directory`, or makes one there. Only the key is stored; the certificate is derived from it each
 * time, so the two always match.
 * @throws Error of the file system
 */
export async function loadIdentity(directory: string, random: Random = systemRandom): Promise<Identity> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, fileName)
  const found = await readKey(path)
  if (typeof found === 'object') return identityOf(found, 'kept')

  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const scratch = join(directory, `.${fileName}.${Buffer.from(random.bytes(8)).toString('hex')}`)
  await write(scratch, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  if (found === 'unfit') {
    await rename(scratch, path)
    await syncDirectory(directory)
    return identityOf(privateKey, 'replaced')
  }
  try {
    // link instead of rename: if two agents start at once (an upgrade), both must use the key that came first.
    await link(scratch, path)
    await syncDirectory(directory)
    return identityOf(privateKey, 'made')
  } catch (error) {
    const theirs = await readKey(path)
    if (codeOf(error) === 'EEXIST' && typeof theirs === 'object') return identityOf(theirs, 'kept')
    throw error
  } finally {
    await unlink(scratch)
  }
}

function identityOf(key: KeyObject, origin: Identity['origin']): Identity {
  return {
    key: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: certificateFor(key),
    fingerprint: fingerprintOf(key),
    origin,
  }
}

async function readKey(path: string): Promise<KeyObject | 'absent' | 'unfit'> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  })
  if (file === undefined) return 'absent'
  try {
    // Other users may have copied a key that they could read.
    if (((await file.stat()).mode & 0o077) !== 0) return 'unfit'
    const key = parseKey(await file.readFile())
    return key?.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : 'unfit'
  } finally {
    await file.close()
  }
}

function parseKey(pem: Buffer): KeyObject | undefined {
  try {
    return createPrivateKey(pem)
  } catch {
    // Not a key: the caller makes a new one, and reports that.
    return undefined
  }
}

async function write(path: string, content: string | Buffer): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | null)?.code
