/**
 * Tests against applications and other nodes that try to read or write foreign files.
 *
 * Long because every attack needs the same layer and archive.
 */
import { createReadStream } from 'node:fs'
import {
  copyFile,
  cp,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { extract } from 'tar-stream'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { compileStatic } from '../../build/compile.ts'
import { run } from '../../build/run.ts'
import { buildWaker } from '../../init-waker/build.ts'
import { cannotUnshare } from '../../init-waker/testing/process.ts'
import { buildNodeTools } from '../build.ts'
import { type Done, enter, startContainer, targetOf } from '../testing/container.ts'
import { forgeArchive, type Member } from '../testing/forged-archive.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const rootfs = '/proc/self/fd/200/rootfs'
const host = () => targetOf(process.pid)
let scratch = ''
let tools = ''
let waker = ''
/** A directory of the node that no process may read or write through a container. */
let outside = ''
beforeAll(async () => {
  if (cannotUnshare !== undefined) return
  scratch = await mkdtemp(join(tmpdir(), 'understudy-hostile-'))
  tools = join(scratch, 'tools')
  outside = join(scratch, 'outside')
  await mkdir(outside)
  await writeFile(join(outside, 'f'), 'SECRET of the node')
  await cp((await buildNodeTools()).directory, tools, { recursive: true })
  waker = await buildWaker()
})
afterAll(async () => {
  if (scratch !== '') await rm(scratch, { recursive: true, force: true })
})

/** Ways from a container or a volume to `outside`, as the target of a link. */
const waysOut: readonly (readonly [string, () => string])[] = [
  ['an absolute path', () => outside],
  ['a relative path', () => `${'../'.repeat(20)}${outside.slice(1)}`],
  ['the root of another process', () => `/proc/1/root${outside}`],
  ['its own root', () => `/proc/self/root${outside}`],
  ['a directory that is open', () => '/proc/self/fd/200/../outside'],
  ['the working directory of a process', () => `/proc/self/cwd/${'../'.repeat(20)}${outside.slice(1)}`],
]

describe.skipIf(cannotUnshare !== undefined)(`D10.tar-reach ${cannotUnshare ?? ''}`, () => {
  it.each(['save', 'apply'])('tar has nothing open that leads out of its sandbox: %s', async verb => {
    const own = join(scratch, `tools-${verb}`)
    await cp(tools, own, { recursive: true })
    await copyFile(
      await compileStatic(join(import.meta.dirname, '../testing/reach.c')),
      join(own, 'criu/ld.so'),
    )
    const volume = await mkdtemp(join(scratch, 'volume-'))
    const [archive, list] = [join(own, 'archive'), join(own, 'list')]
    for (const path of [archive, list]) await writeFile(path, '')
    const [command, files] =
      verb === 'save'
        ? [[rootfs, verb], { 201: `<${volume}`, 202: `>${archive}`, 203: `>${list}` }]
        : [[rootfs, verb, '--directory'], { 201: `<${volume}`, 202: `<${archive}`, 203: `<${list}` }]
    const environment = { UNDERSTUDY_FOR: 'files' }
    const all = { ...files, 205: `<${own}` }
    expect(await enter(own, await host(), 'keep', command, all, environment)).toEqual({
      ...{ code: 0, stdout: '', stderr: '' },
    })
  })
})

describe.skipIf(cannotUnshare !== undefined)(`D10.links: saving ${cannotUnshare ?? ''}`, () => {
  /** Saves a volume while `change` swaps a file in it between the walk and the reading of its files. */
  async function saveWhile(change: (volume: string) => Promise<void>): Promise<Done & { archive: Buffer }> {
    const into = await mkdtemp(join(scratch, 'saved-'))
    const volume = await mkdtemp(join(scratch, 'volume-'))
    await mkdir(join(volume, 'a'))
    await writeFile(join(volume, 'a/f'), 'mine')
    // More names than a pipe holds: the program blocks while it writes the list.
    for (let i = 0; i < 1200; i += 1) await writeFile(join(volume, `z${String(i).padStart(99, '0')}`), '')
    const [archive, list] = [join(into, 'archive'), join(into, 'list')]
    await writeFile(archive, '')
    await run('mkfifo', [list])
    const reader = await open(list, 'r+')
    const files = { 201: `<${volume}`, 202: `>${archive}`, 203: `>${list}` }
    const saving = enter(tools, await host(), 'keep', [rootfs, 'save'], files)
    const first = Buffer.alloc(1)
    await reader.read(first)
    await change(volume)
    const rest = createReadStream(list)
    rest.resume()
    const done = await saving
    rest.destroy()
    await reader.close()
    return { ...done, archive: await readFile(archive) }
  }

  it.each(waysOut)('a directory that becomes a link is not followed: %s', async (_, target) => {
    const { archive, code } = await saveWhile(async volume => {
      await rename(join(volume, 'a'), join(volume, 'b'))
      await symlink(target(), join(volume, 'a'))
    })
    expect(archive.includes('SECRET')).toBe(false)
    expect(code).not.toBe(0)
  })

  it('a file that becomes a link is saved as the link that it is', async () => {
    const { archive } = await saveWhile(async volume => {
      await rm(join(volume, 'a/f'))
      await symlink(join(outside, 'f'), join(volume, 'a/f'))
    })
    expect(archive.includes('SECRET')).toBe(false)
  })

  it('a file that becomes a pipe or a device of the node holds up nobody', async () => {
    const { archive } = await saveWhile(async volume => {
      await rm(join(volume, 'a/f'))
      await run('mkfifo', [join(volume, 'a/f')])
    })
    expect(await namesIn(archive)).toContain('fifo a/f')
  })
})

describe.skipIf(cannotUnshare !== undefined)(`D10.links: nested ${cannotUnshare ?? ''}`, () => {
  const nest = (root: string) =>
    run(
      process.execPath,
      [
        '-e',
        "const fs = require('node:fs'); for (let i = 0; i < 20_000; i += 1) { fs.mkdirSync('a'); process.chdir('a') }",
      ],
      { cwd: root },
    )

  it('20,000 directories in one another end a save, and the clearing of what is there, with a message', async () => {
    const [into, volume] = [await mkdtemp(join(scratch, 'saved-')), await mkdtemp(join(scratch, 'volume-'))]
    try {
      await nest(volume)
      const [archive, list] = [join(into, 'archive'), join(into, 'list')]
      for (const path of [archive, list]) await writeFile(path, '')
      const save = { 201: `<${volume}`, 202: `>${archive}`, 203: `>${list}` }
      expect(await enter(tools, await host(), 'keep', [rootfs, 'save'], save)).toMatchObject({
        ...{ code: 125, stderr: expect.stringMatching(/more than 512 directories deep/) },
      })
      const empty = await forged([], [])
      const apply = { 201: `<${volume}`, 202: `<${empty.archive}`, 203: `<${empty.list}` }
      expect(await enter(tools, await host(), 'keep', [rootfs, 'apply', '--directory'], apply)).toMatchObject(
        {
          ...{ code: 125, stderr: expect.stringMatching(/more than 512 directories deep/) },
        },
      )
    } finally {
      await run('rm', ['-rf', volume])
    }
  })
})

async function namesIn(archive: Buffer): Promise<string[]> {
  const found: string[] = []
  const reader = extract()
  reader.on('entry', ({ type, name }, stream, next) => {
    found.push(`${type} ${name}`)
    stream.resume()
    next()
  })
  await pipeline([archive], reader)
  return found
}

const forged = async (members: readonly Member[], names: readonly string[]) =>
  forgeArchive(await mkdtemp(join(scratch, 'forged-')), members, names)

/** With these rights only tar checks the members; the tests with volumes use the other path. */
const everyRight = ['--user', 'any', '--group', 'any', '--capabilities', '--devices']

const evil = (name: string): Member => ({ name, content: 'evil' })

/** Checks that all files outside are unharmed. */
async function expectUnharmed(): Promise<void> {
  expect(await readdir(outside)).toEqual(['f'])
  expect(await readFile(join(outside, 'f'), 'utf8')).toBe('SECRET of the node')
  expect((await readdir(scratch)).filter(name => name.startsWith('evil'))).toEqual([])
}

describe.skipIf(cannotUnshare !== undefined)(`D10.archives: bringing back ${cannotUnshare ?? ''}`, () => {
  interface Place {
    /** Its files, as the node sees them. */
    readonly root: string
    apply(saved: { archive: string; list: string }): Promise<Done>
  }
  async function inVolume(use: (place: Place) => Promise<void>): Promise<void> {
    const root = await mkdtemp(join(scratch, 'volume-'))
    await use({
      root,
      apply: async ({ archive, list }) => {
        const files = { 201: `<${root}`, 202: `<${archive}`, 203: `<${list}` }
        return enter(tools, await host(), 'keep', [rootfs, 'apply', '--directory'], files)
      },
    })
  }
  async function inContainer(use: (place: Place) => Promise<void>): Promise<void> {
    const directory = await mkdtemp(join(scratch, 'target-'))
    const command = ['/waker', 'hold', '--dir', '/orders']
    await using container = await startContainer({ tools, directory, programs: [waker], command })
    await use({
      root: `/proc/${container.pid}/root`,
      apply: ({ archive, list }) =>
        enter(tools, container, 'keep', [rootfs, 'apply', ...everyRight], {
          202: `<${archive}`,
          203: `<${list}`,
        }),
    })
  }
  const places = [
    ['a volume', inVolume],
    ['a container', inContainer],
  ] as const

  describe.each(places)('into %s', (_, within) => {
    it.each(waysOut)('no file lands behind a link that an earlier memory left: %s', async (_name, target) => {
      await within(async place => {
        const link = await forged([{ name: 'x', type: 'symlink', linkname: target() }], ['f- x'])
        expect(await place.apply(link)).toMatchObject({ code: 0 })
        // The list keeps the link, the archive writes beneath it.
        const beneath = await forged([evil('x/evil'), evil('x/f')], ['f- x'])
        expect((await place.apply(beneath)).code).not.toBe(0)
        await expectUnharmed()
      })
    })

    it.each(waysOut)('nor behind one in the same archive: %s', async (_name, target) => {
      await within(async place => {
        const members: Member[] = [{ name: 'x', type: 'symlink', linkname: target() }, evil('x/evil')]
        await place.apply(await forged(members, ['f- x', 'f- x/evil']))
        await expectUnharmed()
      })
    })

    it.each([
      ['an absolute name', () => `${outside}/evil`],
      ['a name that climbs', () => `${'../'.repeat(20)}${outside.slice(1)}/evil`],
      ['a name of /proc', () => `proc/self/fd/200/../outside/evil`],
    ])('no file lands outside by %s', async (_name, name) => {
      await within(async place => {
        await place.apply(await forged([evil(name())], []))
        await expectUnharmed()
      })
    })

    it.each([
      ['an absolute name', () => `${outside}/f`],
      ['a name that climbs', () => `${'../'.repeat(20)}${outside.slice(1)}/f`],
    ])('a hard link by %s gives no file of the node', async (_name, linkname) => {
      await within(async place => {
        const members: Member[] = [
          { name: 'h', type: 'link', linkname: linkname() },
          { name: 'h', content: 'overwritten' },
        ]
        await place.apply(await forged(members, ['f- h']))
        const seen = await readFile(join(place.root, 'h'), 'utf8').catch(() => '')
        expect(seen).not.toContain('SECRET')
        await expectUnharmed()
      })
    })

    it('names of any bytes are names', async () => {
      await within(async place => {
        const name = 'two\nlines --exclude=x'
        expect(await place.apply(await forged([evil(name)], [`f- ${name}`]))).toMatchObject({ code: 0 })
        expect(await readdir(place.root)).toContain(name)
      })
    })

    it('an archive that ends too early, or says that a file is huge, is none', async () => {
      await within(async place => {
        const saved = await forged([evil('a')], ['f- a'])
        const bytes = await readFile(saved.archive)
        // The size in the header, and its checksum.
        bytes.write('77777777777\0', 124, 'latin1')
        bytes.write('        ', 148, 'latin1')
        const sum = bytes.subarray(0, 512).reduce((total, byte) => total + byte, 0)
        bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
        await writeFile(saved.archive, bytes)
        expect((await place.apply(saved)).code).not.toBe(0)
        // Not more than the received bytes.
        const used = Number(await run('stat', ['-c', '%b', join(place.root, 'a')]).catch(() => '0'))
        expect(used).toBeLessThan(100)
      })
    })
  })

  it('what is mounted in a container stays what it is, whatever the archive says', async () => {
    await inContainer(async place => {
      const members = [evil('orders/evil'), evil('proc/evil'), evil('orders')]
      await place.apply(await forged(members, ['f- orders', 'f- orders/evil']))
      expect((await readdir(join(place.root, 'orders'))).sort()).toEqual(['hold.key', 'hold.sock'])
    })
  })
})
