/** Who this node's agent is to its peers: a key that stays on the node and outlives the agent's pod. */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { constants, link, mkdir, open, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type Random, systemRandom } from '../../kube/random.ts'
import { certificateFor, fingerprintOf } from './certificate.ts'

export interface Identity {
  /** Private key, PEM (PKCS #8). Never to be logged. */
  readonly key: string
  /** Self-signed certificate, PEM. */
  readonly cert: string
  /** SHA-256 of the public key (SubjectPublicKeyInfo), 64 hex digits: what peers know this agent by. */
  readonly fingerprint: string
  /** `replaced`: there was a key, but it could not be read or others could read it. */
  readonly origin: 'kept' | 'made' | 'replaced'
}

const fileName = 'peer-key.pem'

/**
 * The key in `directory`, made there if there is none. Only the key is kept: the certificate is made from it anew, so
 * the two can never disagree.
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
    // Not rename: two agents may start at once (an upgrade), and both must end up with the key that came first.
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
    // What others could read may be in others' hands.
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
    // Whatever it is, it is no key: the caller makes one, and says so.
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
