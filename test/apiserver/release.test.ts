/** A release of this machine's architecture: installed from its files, and pushed to a registry. */
import { execFileSync } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { imageArchitecture } from '../../build/architecture.ts'
import { projectVersion } from '../../build/project-version.ts'
import { run } from '../../build/run.ts'
import { type ControlPlane, startControlPlane } from '../../playground/control-plane.ts'
import { archiveOf, names, readImages } from '../../release/files.ts'
import { imagesOf } from '../../release/install-manifest.ts'
import { makeRelease, type ReleaseOptions } from '../../release/make.ts'
import { pushRelease } from '../../release/push.ts'
import { publicPem, throwAwayKey } from '../../release/signature.ts'
import { problemsOf } from '../../release/verify.ts'
import { type ImageRegistry, startImageRegistry } from '../support/image-registry.ts'

// Own API server: these objects are cluster-wide and would disturb the other tests.
let cluster: ControlPlane
let registry: ImageRegistry
let scratch = ''
let release = ''
const key = throwAwayKey()
const publicKey = publicPem(key)

const optionsWith = (kubectl: string): ReleaseOptions => ({
  source: { commit: '0123456789'.repeat(4), time: new Date(1_700_000_000_000) },
  architectures: [imageArchitecture()],
  baseUrl: 'https://understudy.invalid/releases',
  builder: 'https://understudy.invalid/builder/test',
  // They take most of the time, and have tests of their own.
  programs: false,
  ...{ key, kubectl },
})

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-release-test-'))
  release = join(scratch, 'release')
  cluster = await startControlPlane()
  registry = await startImageRegistry()
  await makeRelease(release, optionsWith(cluster.kubectl))
})
afterAll(async () => {
  await registry?.stop()
  await cluster?.stop()
  await rm(scratch, { recursive: true, force: true })
})

const kubectl = (...args: string[]): Promise<string> =>
  run(cluster.kubectl, ['--kubeconfig', cluster.kubeconfigPath, ...args])
const read = (name: string): Promise<string> => readFile(join(release, name), 'utf8')

test('D20.no-registry: without a registry, install.yaml is refused with a sentence, and nothing of it is created', async () => {
  await expect(kubectl('apply', '-f', join(release, names.manifest))).rejects.toThrow(
    /The-registry-is-missing--put-yours-in--docs-install-md-says-how/,
  )
  expect(await kubectl('get', 'namespaces,crds', '-o', 'name')).not.toMatch(/understudy|backup\.example\.com/)
})

test('D20.install: with a registry, a real API server accepts every object, and every image is one of the release', async () => {
  const manifest = join(scratch, 'my-install.yaml')
  // The command as the head of the file has it.
  const [, command = ''] = /^#\s+(sed .*) > my-install\.yaml$/m.exec(await read(names.manifest)) ?? []
  const target = `${registry.address}/understudy`
  await run('sh', ['-c', `${command.replace('registry.example/understudy', target)} > my-install.yaml`], {
    cwd: release,
  })
  await cp(join(release, 'my-install.yaml'), manifest)
  await rm(join(release, 'my-install.yaml'))
  await kubectl('apply', '--validate=strict', '-f', manifest)

  const { images } = await readImages(release)
  const inRelease = Object.entries(images).map(([name, { digest }]) => `${target}/${name}@${digest}`)
  expect(imagesOf(await readFile(manifest, 'utf8'))).toEqual(inRelease.sort())
  const running = await kubectl(
    ...['get', 'deployments,daemonsets', '-A', '-o'],
    'jsonpath={range .items[*].spec.template.spec.containers[*]}{.image}{"\\n"}{.args}{"\\n"}{end}',
  )
  for (const image of inRelease) expect(running).toContain(image)
  expect(running).not.toContain('understudy.invalid')
})

test('D20.push: a registry has the same digests as install.yaml, and the signatures where cosign looks for them', async () => {
  const target = `${registry.address}/understudy`
  const pushed = await pushRelease(release, { crane: registry.crane, registry: target })
  const { images } = await readImages(release)
  expect(pushed).toEqual(Object.entries(images).map(([name, { digest }]) => `${target}/${name}@${digest}`))
  for (const image of pushed) {
    // Fetches every blob and compares it with its digest.
    await run(registry.crane, ['validate', '--remote', image])
    const [repository = '', digest = ''] = image.split('@')
    const signature = await run(registry.crane, ['manifest', `${repository}:${digest.replace(':', '-')}.sig`])
    expect(signature).toContain('dev.cosignproject.cosign/signature')
  }
})

test('D20.site: the archive has the pages of this version, and the list of versions', async () => {
  const version = `v${await projectVersion()}`
  const archive = join(release, `understudy-site_${version}.tar.gz`)
  const files = (await run('tar', ['-tzf', archive])).split('\n')
  expect(files).toEqual(
    expect.arrayContaining(['site/index.html', 'site/versions.json', `site/${version}/docs/runbooks.html`]),
  )
})

test('D20.again: the same commit gives the same files, except for the signatures', async () => {
  const second = join(scratch, 'second')
  await makeRelease(second, { ...optionsWith(cluster.kubectl), key: throwAwayKey() })
  expect(await readFile(join(second, names.checksums), 'utf8')).toBe(await read(names.checksums))
  expect(await readFile(join(second, names.checksumsSignature), 'utf8')).not.toBe(
    await read(names.checksumsSignature),
  )
})

describe('D20.verify: a release', () => {
  test('is in order: digests, manifest, bills of material, provenance, signatures', async () => {
    expect(await problemsOf(release, publicKey)).toEqual([])
  })

  test('verifies with programs that users have', async () => {
    await run('sha256sum', ['--check', '--strict', '--quiet', names.checksums], { cwd: release })
    const command =
      `base64 -d ${names.checksumsSignature} > signature && ` +
      `openssl dgst -sha256 -verify ${names.publicKey} -signature signature ${names.checksums}; rm signature`
    expect(execFileSync('sh', ['-c', command], { cwd: release, encoding: 'utf8' })).toBe('Verified OK\n')
  })

  test('of another key is refused', async () => {
    expect(await problemsOf(release, publicPem(throwAwayKey()))).toEqual([
      'SHA256SUMS is not signed by this key',
    ])
  })

  const waker = `waker_${imageArchitecture()}.cdx.json`
  test.each([
    [names.manifest, /^install\.yaml: .* is now /],
    [waker, /^waker_.*\.cdx\.json: .* is now /],
    [archiveOf('waker'), /^waker\.oci\.tar: .* is now /],
    [names.checksums, /^SHA256SUMS is not signed/],
    [names.imageSignatures, /^the image operator is not signed/],
    [names.provenance, /^provenance\.intoto\.jsonl is not signed/],
  ])('with a changed %s is refused', async (name, message) => {
    const content = await readFile(join(release, name), 'latin1')
    // Another digit or letter: what was valid JSON or YAML stays so.
    const at = content.search(/[0-9a-f]{12}|payload": "|eyJ/) + 11
    const other = content[at] === 'a' ? 'b' : 'a'
    try {
      await writeFile(
        join(release, name),
        `${content.slice(0, at)}${other}${content.slice(at + 1)}`,
        'latin1',
      )
      expect((await problemsOf(release, publicKey)).join('\n')).toMatch(message)
    } finally {
      await writeFile(join(release, name), content, 'latin1')
    }
  })

  test('with another file is refused', async () => {
    await writeFile(join(release, 'extra'), '')
    expect(await problemsOf(release, publicKey)).toEqual([expect.stringMatching(/^extra: missing is now /)])
    await rm(join(release, 'extra'))
  })

  test('names the packages of its images', async () => {
    const agent: unknown = JSON.parse(await read(`agent_${imageArchitecture()}.cdx.json`))
    const named = (name: string) => expect.objectContaining({ name })
    expect(agent).toMatchObject({
      components: expect.arrayContaining(['criu', 'libc6', 'musl', 'node', 'pino'].map(named)),
    })
  })
})
