import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { buildCli } from '../build/cli.ts'
import packageJson from '../package.json' with { type: 'json' }
import { buildExecutable } from './executable.ts'
import { krewManifest } from './krew.ts'
import { readNodeLock, verify } from './node.ts'
import { packagesIn } from './notices.ts'
import { ownPlatform, platforms, programNameOn } from './platform.ts'

const run = promisify(execFile)
let scratch = ''
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-plugin-'))
})
afterAll(() => rm(scratch, { recursive: true, force: true }))

const digest = async (path: string) =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex')

describe('D19.executable: the single executable', () => {
  test('runs without Node on the machine, and is the same when it is built again', async () => {
    const build = async (name: string) => {
      const { program } = await buildCli(join(scratch, name))
      return buildExecutable(ownPlatform(), program, join(scratch, name, 'executable'))
    }
    const first = await build('first')
    // NODE_OPTIONS are for other programs: this one would not start with it.
    const env = { PATH: join(scratch, 'nothing'), NODE_OPTIONS: '--require /nowhere.js' }
    expect((await run(first, ['--version'], { env })).stdout.trim()).toBe(packageJson.version)
    await expect(
      run(first, ['status', '--kubeconfig', join(scratch, 'none')], { env }),
    ).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^error: cannot read kubeconfig [^\n]*\n$/),
    })
    expect(await digest(await build('second'))).toBe(await digest(first))
  })

  test('is made of no Node but the locked one', async () => {
    const { packages } = await readNodeLock()
    expect(Object.keys(packages).sort()).toEqual([...platforms].sort())
    const forged = join(scratch, 'forged.tgz')
    await writeFile(forged, 'another')
    await expect(verify(forged, packages['linux-amd64'].integrity)).rejects.toThrow(/: refused$/)
  })

  test('exists for five platforms, and others are told how to do without', () => {
    expect(ownPlatform('darwin', 'arm64')).toBe('darwin-arm64')
    expect(ownPlatform('win32', 'x64')).toBe('windows-amd64')
    expect(programNameOn('windows-amd64')).toBe('kubectl-understudy.exe')
    expect(() => ownPlatform('freebsd', 'x64')).toThrow('no single executable for freebsd-amd64')
  })
})

test('D19.krew: the manifest names each archive with its digest, program and licences', () => {
  const archives = platforms.map((platform, index) => ({
    ...{ platform, name: `plugin-${platform}.tar.gz`, sha256: `${index}`.repeat(64) },
  }))
  const { apiVersion, metadata, spec } = parse(krewManifest('1.2.3', 'https://here.invalid/v1/', archives))
  expect(apiVersion).toBe('krew.googlecontainertools.github.com/v1alpha2')
  expect([metadata.name, spec.version]).toEqual(['understudy', 'v1.2.3'])
  // The index of krew refuses longer ones.
  expect(spec.shortDescription.length).toBeLessThanOrEqual(50)
  expect(spec.platforms).toHaveLength(5)
  expect(spec.platforms[4]).toEqual({
    selector: { matchLabels: { os: 'windows', arch: 'amd64' } },
    uri: 'https://here.invalid/v1/plugin-windows-amd64.tar.gz',
    sha256: '4'.repeat(64),
    bin: 'kubectl-understudy.exe',
    files: ['kubectl-understudy.exe', 'LICENSE', 'NOTICES'].map(from => ({ from, to: '.' })),
  })
})

test('the packages whose licences go with the program are those that are in it', () => {
  expect(
    packagesIn([
      'src/cli/main.ts',
      'node_modules/yaml/dist/index.js',
      'node_modules/@scope/name/a.js',
      'node_modules/yaml/dist/b.js',
      'node_modules/a/node_modules/b/c.js',
    ]),
  ).toEqual(['node_modules/@scope/name', 'node_modules/a/node_modules/b', 'node_modules/yaml'])
})
