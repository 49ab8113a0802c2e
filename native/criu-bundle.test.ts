import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { run } from '../build/run.ts'
import { criuBundle, withoutPreloadFile } from './criu-bundle.ts'

let scratch = ''
let directory = ''
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy bundle-'))
  // Moved to another place, under a name that needs quoting.
  directory = join(scratch, 'criu')
  await cp((await criuBundle()).directory, directory, { recursive: true })
})
afterAll(() => rm(scratch, { recursive: true, force: true }))

const command = (...words: readonly string[]): [program: string, args: string[]] => [
  join(directory, 'ld.so'),
  ['--library-path', join(directory, 'lib'), ...words],
]

test.each([
  ['criu', ['--version'], /^Version: 4\.[2-9]/],
  ['tar', ['--version'], /^tar \(GNU tar\) 1\./],
])('%s runs with the libraries of the bundle alone', async (program, args, answer) => {
  const path = join(directory, program)
  expect(await run(...command(path, ...args))).toMatch(answer)
  const listed = (await run(...command('--list', path))).trim().split('\n')
  const libraries = listed.flatMap(line => / => (.*) \(0x/.exec(line)?.[1] ?? [])
  expect(libraries.length).toBeGreaterThan(2)
  // The loader must be the bundle's own; the vdso belongs to the kernel.
  const loaders = libraries.filter(it => !it.startsWith(`${directory}/lib/`))
  expect(loaders.filter(it => it !== join(directory, 'ld.so'))).toEqual([])
})

test('its loader knows no file of libraries to preload, and one of which that is not known is refused', async () => {
  const name = '/etc/ld.so.preload'
  expect((await readFile(join(directory, 'ld.so'))).indexOf(name)).toBe(-1)
  const loader = (...parts: readonly string[]) => Buffer.from(parts.join('\0'))
  expect(withoutPreloadFile(loader('a', name, 'b'))).toEqual(loader('a', '\0'.repeat(name.length), 'b'))
  for (const other of [
    loader('a', 'b'),
    loader('a', name, name, 'b'),
    loader(name, `${name}d`, ''),
    loader(`${name}d`, ''),
  ])
    expect(() => withoutPreloadFile(other)).toThrow('exactly once')
})

test('it says what it was taken from', async () => {
  const { packages, versions } = await criuBundle()
  expect(await readFile(join(directory, 'packages'), 'utf8')).toBe(`${packages.join('\n')}\n`)
  for (const version of Object.values(versions))
    expect(packages.some(it => it.includes(`_${version}_`))).toBe(true)
  const files = await readdir(directory)
  expect(files.sort()).toEqual(['criu', 'criu-shim.so', 'ld.so', 'lib', 'packages', 'plugins', 'tar'])
})
