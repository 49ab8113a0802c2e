import { execFile } from 'node:child_process'
import { appendFile, copyFile, mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import packageLock from '../package-lock.json' with { type: 'json' }
import { readNodeLock, verifiedNode } from './node-lock.ts'

const require = createRequire(import.meta.url)
const real = join(dirname(require.resolve('node/package.json')), 'bin/node')
const script = fileURLToPath(new URL('verify-node.sh', import.meta.url))
const lock = await readNodeLock()
const { version } = lock
let scratch = ''
let forged = ''
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-node-'))
  forged = join(scratch, 'node')
  await copyFile(real, forged)
  await appendFile(forged, '\n')
})
afterAll(() => rm(scratch, { recursive: true, force: true }))

const verify = (...args: string[]) => promisify(execFile)('sh', [script, ...args])
const locked = process.platform === 'linux' && process.arch in lock.sha256

test('the locked version is the one of package-lock.json, for both architectures', () => {
  expect(packageLock.packages['node_modules/node'].version).toBe(version)
  expect(Object.keys(lock.sha256).sort()).toEqual(['arm64', 'x64'])
})

describe.runIf(locked)('D10.node: the Node binary, which package-lock.json has no digest of', () => {
  test('is taken as it is locked', async () => {
    expect(await verifiedNode(real, version, { lock })).toBe(lock.sha256[process.arch])
    await verify()
    await verify(real)
  })

  test('a forged one is refused by every build of an image', async () => {
    await expect(verifiedNode(forged, version, { lock })).rejects.toThrow(/: refused.*npm ci/)
  })

  test('and before tests, by a program that it is not', async () => {
    await expect(verify(forged)).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/: refused\n *expected SHA-256 [0-9a-f]{64}\n.*\nDo not run it/),
    })
  })

  test('so is one of another version or architecture, or none', async () => {
    await expect(verifiedNode(real, '24.0.0', { lock })).rejects.toThrow(/no digest of Node 24\.0\.0/)
    await expect(verifiedNode(real, version, { lock, architecture: 's390x' })).rejects.toThrow(/for s390x/)
    await expect(verify(real, 's390x')).rejects.toMatchObject({ code: 1 })
    const other = process.arch === 'x64' ? 'aarch64' : 'x86_64'
    await expect(verify(real, other)).rejects.toMatchObject({
      stderr: expect.stringMatching(/: refused/),
    })
    await expect(verify(join(scratch, 'none'))).rejects.toMatchObject({
      stderr: expect.stringMatching(/npm ci/),
    })
  })
})
