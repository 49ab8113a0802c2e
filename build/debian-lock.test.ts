import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type PackageFile, parseUris } from './apt.ts'
import { architectures } from './architecture.ts'
import { lockedTree, type PackageSource } from './debian.ts'
import { LockedFilesGone, lockText, readLock } from './debian-lock.ts'
import { type PackageSet, packageSets, setNames } from './package-sets.ts'
import { run } from './run.ts'

let scratch = ''
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-lock-'))
})
afterEach(() => rm(scratch, { recursive: true, force: true }))

const set: PackageSet = { suite: 'forky', names: ['tool'], dependencies: true }

/** Puts a package into the test's archive: one file, `/usr/share/NAME`, that contains its version. */
async function publish(name: string, version: string): Promise<PackageFile> {
  const tree = join(scratch, `${name}-${version}`)
  await mkdir(join(tree, 'DEBIAN'), { recursive: true })
  await mkdir(join(tree, 'usr/share'), { recursive: true })
  await writeFile(
    join(tree, 'DEBIAN/control'),
    `Package: ${name}\nVersion: ${version}\nArchitecture: all\nMaintainer: a <a@b.example>\nDescription: ${name}\n`,
  )
  await writeFile(join(tree, 'usr/share', name), version)
  const path = `pool/main/t/${name}_${version}_all.deb`
  const file = join(scratch, 'archive', path)
  await mkdir(dirname(file), { recursive: true })
  await run('dpkg-deb', ['--root-owner-group', '--build', tree, file])
  const sha256 = createHash('sha256')
    .update(await readFile(file))
    .digest('hex')
  return { package: name, version, archive: 'main', path, sha256 }
}

/** The test's archive; its signed lists name the given files. */
function source(present: readonly PackageFile[]) {
  const index = vi.fn<PackageSource['index']>(async () => ({ files: async () => [...present] }))
  const uri = `file:${join(scratch, 'archive')}/`
  return { index, archives: async () => ({ main: { uri, signedBy: '' } }) }
}

function listen(more: { locked?: boolean } = {}) {
  const said: string[] = []
  const progress = (message: string) => void said.push(message)
  return { said, options: { cacheDir: join(scratch, 'cache'), progress, locked: false, ...more } }
}

const shared = (tree: { root: string }, name: string) => readFile(join(tree.root, 'usr/share', name), 'utf8')

test('a tree has the files of the lock, though the archive has newer ones, and no list is read', async () => {
  const locked = [await publish('library', '2'), await publish('tool', '1+b1')]
  const from = source([await publish('library', '3'), await publish('tool', '2')])
  const { options, said } = listen()
  const tree = await lockedTree('tools', set, locked, options, from)
  expect(tree.packages).toEqual(['library_2_all', 'tool_1+b1_all'])
  expect(await shared(tree, 'tool')).toBe('1+b1')
  expect(from.index).not.toHaveBeenCalled()
  expect(said).toEqual(['Debian packages: tool'])
  // From the cache: the archive is not read, and no message says so.
  await rm(join(scratch, 'archive'), { recursive: true })
  expect(await lockedTree('tools', set, locked, options, from)).toEqual(tree)
  expect(said).toHaveLength(1)
})

test('another lock is another entry of the cache', async () => {
  const [one, two] = [await publish('tool', '1'), await publish('tool', '2')]
  const { options } = listen()
  const first = await lockedTree('tools', set, [one], options, source([two]))
  const second = await lockedTree('tools', set, [two], options, source([two]))
  expect([await shared(first, 'tool'), await shared(second, 'tool')]).toEqual(['1', '2'])
})

test.each([false, true])(
  'a file with another digest is refused (locked: %s), whatever the lists name',
  async locked => {
    const file = await publish('tool', '1')
    const wrong = { ...file, sha256: '0'.repeat(64) }
    const from = source([file])
    const { options } = listen({ locked })
    await expect(lockedTree('tools', set, [wrong], options, from)).rejects.toThrow(
      `${file.path} does not have SHA-256 ${wrong.sha256}`,
    )
    expect(from.index).not.toHaveBeenCalled()
    // The failed build leaves nothing in the cache.
    expect(await readdir(join(scratch, 'cache/debian'))).toEqual([])
  },
)

test('what the archive dropped is replaced by what it has now, and each build says so', async () => {
  const [dropped, tool] = [await publish('library', '2'), await publish('tool', '1')]
  const locked = [dropped, tool]
  const from = source([await publish('library', '3'), await publish('new', '1'), tool])
  await rm(join(scratch, 'archive', dropped.path))
  const { options, said } = listen()
  const tree = await lockedTree('tools', set, locked, options, from)
  expect(tree.packages).toEqual(['library_3_all', 'new_1_all', 'tool_1_all'])
  expect(await shared(tree, 'library')).toBe('3')
  const warning =
    /^WARNING: .* no longer has library_2_all of .*: library 2 -> 3, new none -> 1\. Renew the lock/
  expect(said.at(-1)).toMatch(warning)

  const again = listen()
  expect(await lockedTree('tools', set, locked, again.options, from)).toEqual(tree)
  expect(again.said).toEqual([expect.stringMatching(warning)])
})

test('who wants the lock and nothing else gets an error, also where a substitute is in the cache', async () => {
  const locked = [await publish('tool', '1')]
  const now = [await publish('tool', '2')]
  const file = join(scratch, 'archive', locked[0]?.path ?? '')
  const bytes = await readFile(file)
  await rm(file)
  const strict = listen({ locked: true }).options
  const build = () => lockedTree('tools', set, locked, strict, source(now))
  await expect(build()).rejects.toThrow(LockedFilesGone)
  await lockedTree('tools', set, locked, listen().options, source(now))
  await expect(build()).rejects.toThrow('tool 1 -> 2')
  // The archive has it again: from then on the locked file takes precedence over the substitute.
  await writeFile(file, bytes)
  expect((await build()).packages).toEqual(['tool_1_all'])
  const { options, said } = listen()
  expect((await lockedTree('tools', set, locked, options, source(now))).packages).toEqual(['tool_1_all'])
  expect(said).toEqual([])
})

test('a file that did not come, but is named by the lists, is no reason for another', async () => {
  const locked = [await publish('tool', '1')]
  await rm(join(scratch, 'archive'), { recursive: true })
  const built = lockedTree('tools', set, locked, listen().options, source(locked))
  await expect(built).rejects.toThrow(/cannot download Debian packages: tool_1_all: .*apt-helper/)
})

test('what apt prints is read: quoted paths, epochs, both archives; a weak digest or a strange place is refused', () => {
  const archives = {
    main: { uri: 'http://mirror.example/debian/', signedBy: '' },
    security: { uri: 'http://mirror.example/debian-security', signedBy: '' },
  }
  const digest = 'a'.repeat(64)
  const line = (path: string, name: string, hash = `SHA256:${digest}`) =>
    `'http://mirror.example/${path}' ${name} 12 ${hash} \n`
  const text = `Reading package lists...\n${line('debian-security/pool/updates/main/t/t_1%7eb_amd64.deb', 't_1~b_amd64.deb')}${line('debian/pool/main/b/b_1.3-6%2bb9_all.deb', 'b_1%3a1.3-6+b9_all.deb')}`
  expect(parseUris(text, archives)).toEqual([
    {
      package: 'b',
      version: '1:1.3-6+b9',
      archive: 'main',
      path: 'pool/main/b/b_1.3-6+b9_all.deb',
      sha256: digest,
    },
    {
      package: 't',
      version: '1~b',
      archive: 'security',
      path: 'pool/updates/main/t/t_1~b_amd64.deb',
      sha256: digest,
    },
  ])
  for (const strange of [
    line('debian/pool/t_1_all.deb', 't_1_all.deb', `MD5Sum:${'a'.repeat(32)}`),
    line('other/pool/t_1_all.deb', 't_1_all.deb'),
    line('debian/pool/t_1_all.deb', 't_1_all.deb', ''),
  ])
    expect(() => parseUris(strange, archives)).toThrow('unexpected file')
})

test('the lock has every set of the images, for every architecture, and names no host', async () => {
  const lock = await readLock()
  expect(Object.keys(lock.sets)).toEqual(setNames)
  expect(lock.date).toMatch(/^\d{4}-\d\d-\d\d$/)
  for (const name of setNames) {
    const { names, dependencies } = packageSets[name]
    expect(Object.keys(lock.sets[name])).toEqual(architectures)
    for (const [architecture, files] of Object.entries(lock.sets[name])) {
      const packages = files.map(it => it.package)
      expect(packages).toEqual(dependencies ? expect.arrayContaining([...names]) : names)
      for (const { path, sha256 } of files) {
        expect(path).toMatch(new RegExp(`^pool/[\\w/.+~-]+_(all|${architecture})\\.deb$`))
        expect(sha256).toMatch(/^[0-9a-f]{64}$/)
      }
    }
  }
  expect(lockText(lock)).toBe(await readFile(new URL('debian.lock.json', import.meta.url), 'utf8'))
  expect(lockText(lock)).not.toContain('://')
})

test('what is shipped comes from locked sets', async () => {
  const project = join(import.meta.dirname, '..')
  for (const directory of ['build', 'images', 'images/recipes', 'native', 'init-waker']) {
    for (const name of await readdir(join(project, directory))) {
      if (!name.endsWith('.ts') || name.endsWith('.test.ts') || name === 'debian.ts') continue
      expect(await readFile(join(project, directory, name), 'utf8')).not.toContain('debianPackages(')
    }
  }
})
