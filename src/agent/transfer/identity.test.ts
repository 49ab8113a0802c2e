import { createHash, X509Certificate } from 'node:crypto'
import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadIdentity } from './identity.ts'

let directory: string
beforeEach(async () => {
  directory = join(await mkdtemp(join(tmpdir(), 'identity-')), 'identity')
})
afterEach(() => rm(join(directory, '..'), { recursive: true }))

const keyFile = () => join(directory, 'peer-key.pem')

describe('identity', () => {
  test('is made once and kept', async () => {
    const first = await loadIdentity(directory)
    const second = await loadIdentity(directory)
    expect(first.origin).toBe('made')
    expect(second.origin).toBe('kept')
    expect(second.fingerprint).toBe(first.fingerprint)
    expect(second.key).toBe(first.key)
  })

  test('two agents that start at once have the same key', async () => {
    const identities = await Promise.all(Array.from({ length: 8 }, () => loadIdentity(directory)))
    expect(new Set(identities.map(({ fingerprint }) => fingerprint)).size).toBe(1)
    expect(identities.filter(({ origin }) => origin === 'made')).toHaveLength(1)
  })

  test('only the owner may read it, and nothing else is left', async () => {
    await loadIdentity(directory)
    expect((await stat(keyFile())).mode & 0o777).toBe(0o600)
    expect((await stat(directory)).mode & 0o777).toBe(0o700)
    expect(await readdir(directory)).toEqual(['peer-key.pem'])
  })

  test('the fingerprint is that of the key in the certificate, and the certificate signs itself', async () => {
    const { cert, fingerprint } = await loadIdentity(directory)
    const certificate = new X509Certificate(cert)
    const spki = certificate.publicKey.export({ type: 'spki', format: 'der' })
    expect(createHash('sha256').update(spki).digest('hex')).toBe(fingerprint)
    expect(certificate.verify(certificate.publicKey)).toBe(true)
    expect(new Date(certificate.validTo).getUTCFullYear()).toBe(9999)
    expect(certificate.publicKey.asymmetricKeyDetails?.namedCurve).toBe('prime256v1')
  })

  test('a key that others could read is replaced', async () => {
    const first = await loadIdentity(directory)
    await chmod(keyFile(), 0o640)
    const second = await loadIdentity(directory)
    expect(second.origin).toBe('replaced')
    expect(second.fingerprint).not.toBe(first.fingerprint)
    expect((await stat(keyFile())).mode & 0o777).toBe(0o600)
    expect((await loadIdentity(directory)).fingerprint).toBe(second.fingerprint)
  })

  test.each([
    ['nothing', ''],
    ['half a key', '-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqG'],
  ])('%s in the file is replaced', async (_, content) => {
    await loadIdentity(directory)
    await writeFile(keyFile(), content)
    expect((await loadIdentity(directory)).origin).toBe('replaced')
    expect((await loadIdentity(directory)).origin).toBe('kept')
  })
})
