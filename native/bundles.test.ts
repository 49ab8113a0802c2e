import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { run } from '../images/run.ts'
import { cannotUnshare } from '../init-waker/testing/process.ts'
import { type Bundle, criuBundle, nftBundle } from './bundles.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 300_000 })

const bundles: Record<string, Bundle> = {}
let scratch = ''
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy bundles-'))
  for (const [name, bundle] of [
    ['criu', await criuBundle()],
    ['nft', await nftBundle()],
  ] as const) {
    // Elsewhere than where it was made, and under a name that needs quoting.
    bundles[name] = { ...bundle, directory: join(scratch, name) }
    await cp(bundle.directory, join(scratch, name), { recursive: true })
  }
})
afterAll(() => rm(scratch, { recursive: true, force: true }))

const command = (bundle: string, ...words: readonly string[]): [program: string, args: string[]] => {
  const directory = bundles[bundle]?.directory ?? ''
  return [join(directory, 'ld.so'), ['--library-path', join(directory, 'lib'), ...words]]
}

test.each([
  ['criu', 'criu', ['--version'], /^Version: 4\.[2-9]/],
  ['criu', 'tar', ['--version'], /^tar \(GNU tar\) 1\./],
  ['nft', 'nft', ['--version'], /^nftables v1\./],
])('bundle %s: %s runs with the libraries of the bundle alone', async (bundle, program, args, answer) => {
  const directory = bundles[bundle]?.directory ?? ''
  const path = join(directory, program)
  expect(await run(...command(bundle, path, ...args))).toMatch(answer)
  const listed = (await run(...command(bundle, '--list', path))).trim().split('\n')
  const libraries = listed.flatMap(line => / => (.*) \(0x/.exec(line)?.[1] ?? [])
  expect(libraries.length).toBeGreaterThan(2)
  // The loader is the one that was asked; whatever is called vdso is the kernel's.
  const loaders = libraries.filter(it => !it.startsWith(`${directory}/lib/`))
  expect(loaders.filter(it => it !== join(directory, 'ld.so'))).toEqual([])
})

test('a bundle says what it was taken from', async () => {
  for (const { directory, packages, versions } of Object.values(bundles)) {
    expect(await readFile(join(directory, 'packages'), 'utf8')).toBe(`${packages.join('\n')}\n`)
    for (const version of Object.values(versions)) {
      expect(packages.some(it => it.includes(`_${version}_`))).toBe(true)
    }
  }
  const files = await readdir(bundles['criu']?.directory ?? '')
  expect(files.sort()).toEqual(['criu', 'ld.so', 'lib', 'packages', 'preload.so', 'tar'])
})

test.skipIf(cannotUnshare !== undefined)(
  `nft changes the rules of a network namespace ${cannotUnshare ?? ''}`,
  async () => {
    const [ld, args] = command('nft', join(bundles['nft']?.directory ?? '', 'nft'))
    const script = '"$0" "$@" add table ip understudy && "$0" "$@" list tables'
    const tables = await run('unshare', ['--net', 'sh', '-c', script, ld, ...args])
    expect(tables.trim()).toBe('table ip understudy')
  },
)
