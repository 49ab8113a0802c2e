/** Tests files that give rights to their callers or readers, in archives that another node has made. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compileStatic } from '../../build/compile.ts'
import { run } from '../../build/run.ts'
import { buildWaker } from '../../init-waker/build.ts'
import { cannotUnshare } from '../../init-waker/testing/process.ts'
import { buildNodeTools } from '../build.ts'
import { type Done, enter, startContainer, targetOf } from '../testing/container.ts'
import { forgeArchive, type Member } from '../testing/forged-archive.ts'

const rootfs = '/proc/self/fd/200/rootfs'
let [scratch, tools, waker, xattr] = ['', '', '', '']
beforeAll(async () => {
  if (cannotUnshare !== undefined) return
  scratch = await mkdtemp(join(tmpdir(), 'understudy-rights-'))
  tools = join(scratch, 'tools')
  await cp((await buildNodeTools()).directory, tools, { recursive: true })
  waker = await buildWaker()
  xattr = await compileStatic(join(import.meta.dirname, '../testing/xattr.c'))
})
afterAll(async () => {
  if (scratch !== '') await rm(scratch, { recursive: true, force: true })
})

/** CAP_NET_RAW, permitted and effective, in the kernel's format. */
const netRaw = '\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0'

const file = (name: string, mode: number, uid: number, gid = uid, more: Partial<Member> = {}): Member => ({
  ...{ name, mode, uid, gid, content: '#!', ...more },
})
const forgery: readonly Member[] = [
  file('root', 0o4755, 0, 1000),
  { name: 'linked', type: 'link', linkname: 'root', mode: 0o4755 },
  file('group', 0o2755, 1000, 0),
  file('both', 0o6755, 0),
  file('half', 0o6755, 1000, 0),
  file('own', 0o6755, 1000),
  file('capable', 0o755, 1000, 1000, { pax: { 'SCHILY.xattr.security.capability': netRaw } }),
  file('marked', 0o644, 1000, 1000, {
    pax: { 'SCHILY.xattr.user.key': 'v', 'SCHILY.xattr.trusted.key': 'v' },
  }),
  { name: 'null', type: 'character-device', mode: 0o666, devmajor: 1, devminor: 3 },
  { name: 'disk', type: 'block-device', mode: 0o666, devmajor: 7, devminor: 0 },
  { name: 'shared', type: 'directory', mode: 0o3777, uid: 0, gid: 0 },
  { name: `${'long/'.repeat(30)}root`, mode: 0o4755, uid: 0, gid: 0, content: '#!' },
]
const listed = [
  ...['root', 'linked', 'group', 'both', 'half', 'own', 'capable', 'marked', 'null', 'disk'].map(
    it => `f- ${it}`,
  ),
  'd- shared',
  ...Array.from(
    { length: 30 },
    (_, depth) =>
      `d- ${Array(depth + 1)
        .fill('long')
        .join('/')}`,
  ),
  `f- ${'long/'.repeat(30)}root`,
]

interface Place {
  readonly root: string
  apply(saved: { readonly archive: string; readonly list: string }, options: readonly string[]): Promise<Done>
}
async function inVolume(use: (place: Place) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(scratch, 'volume-'))
  await use({
    root,
    apply: async ({ archive, list }, options) =>
      enter(tools, await targetOf(process.pid), 'keep', [rootfs, 'apply', '--directory', ...options], {
        ...{ 201: `<${root}`, 202: `<${archive}`, 203: `<${list}` },
      }),
  })
}
async function inContainer(use: (place: Place) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(scratch, 'target-'))
  const command = ['/waker', 'hold', '--dir', '/orders']
  await using container = await startContainer({ tools, directory, programs: [waker], command, user: 1000 })
  await use({
    root: `/proc/${container.pid}/root`,
    apply: ({ archive, list }, options) =>
      enter(tools, container, 'keep', [rootfs, 'apply', ...options], {
        ...{ 202: `<${archive}`, 203: `<${list}` },
      }),
  })
}

/** Returns name, kind and mode of all forged files that exist. */
async function found(root: string): Promise<Record<string, string>> {
  const names = forgery.map(({ name }) => name)
  const script = 'for name; do [ ! -e "$name" ] || stat -c "%n %F %a" "$name"; done'
  const lines = await run('sh', ['-c', script, 'sh', ...names], { cwd: root })
  const parts = lines.split('\n').flatMap(line => /^(\S+) (.*) (\d+)$/.exec(line)?.slice(1) ?? [])
  return Object.fromEntries(
    Array.from({ length: parts.length / 3 }, (_, at) => [
      (parts[3 * at] ?? '').replace(/(long\/)+/, 'long/'),
      `${parts[3 * at + 1]?.replace('regular file', 'file')} ${parts[3 * at + 2]}`,
    ]),
  )
}
const attribute = (root: string, name: string, key: string) =>
  run(xattr, ['get', key, join(root, name)]).then(
    value => value.length > 0,
    () => false,
  )

const forged = async (members = forgery, names: readonly string[] = listed) =>
  forgeArchive(await mkdtemp(join(scratch, 'forged-')), members, names)

describe.skipIf(cannotUnshare !== undefined)(`D10.layer-rights ${cannotUnshare ?? ''}`, () => {
  describe.each([
    ['a volume', inVolume],
    ['a container', inContainer],
  ] as const)('into %s', (_, within) => {
    it('no file comes that gives rights which its containers could not have given it', async () => {
      await within(async ({ root, apply }) => {
        const done = await apply(await forged(), ['--user', '1000', '--group', '1000'])
        expect(done).toMatchObject({ code: 0 })
        expect(await found(root)).toEqual({
          ...{ root: 'file 755', linked: 'file 755', group: 'file 755', both: 'file 755', half: 'file 4755' },
          ...{ own: 'file 6755', capable: 'file 755', marked: 'file 644', shared: 'directory 3777' },
          ...{ 'long/root': 'file 755' },
        })
        expect(await attribute(root, 'capable', 'security.capability')).toBe(false)
        expect(await attribute(root, 'marked', 'user.key')).toBe(true)
        expect(await attribute(root, 'marked', 'trusted.key')).toBe(false)
        for (const said of [
          ...['root: without its set-user-ID bit', 'group: without its set-group-ID bit'],
          ...['capable: without its capabilities', 'null: without a device', 'disk: without a device'],
        ])
          expect(done.stderr).toContain(`rootfs: ${said}\n`)
      })
    })

    it('nor is one kept that lay there before', async () => {
      await within(async ({ root, apply }) => {
        await apply(await forged(), everyRight)
        await apply(await forged(), [])
        expect(Object.values(await found(root)).filter(it => /file [1-7]\d{3}/.test(it))).toEqual([])
      })
    })

    it('all of them come where they could have', async () => {
      await within(async ({ root, apply }) => {
        expect(await apply(await forged(), everyRight)).toEqual({ code: 0, stdout: '', stderr: '' })
        expect(await found(root)).toEqual({
          ...{ root: 'file 4755', linked: 'file 4755', group: 'file 2755', both: 'file 6755' },
          ...{ half: 'file 6755', own: 'file 6755', capable: 'file 755', marked: 'file 644' },
          ...{ null: 'character special file 666', disk: 'block special file 666' },
          ...{ shared: 'directory 3777', 'long/root': 'file 4755' },
        })
        expect(await attribute(root, 'capable', 'security.capability')).toBe(true)
        expect(await attribute(root, 'marked', 'trusted.key')).toBe(false)
      })
    })

    it('an archive that two programs read in two ways wins nothing', async () => {
      await within(async ({ root, apply }) => {
        expect(
          await apply(await unseen(file('root', 0o4755, 0)), ['--user', '1000', '--group', '1000']),
        ).toMatchObject({ code: 0 })
        expect((await run('stat', ['-c', '%U %a', 'other'], { cwd: root })).trim()).toBe('root 755')
      })
    })
  })

  it('a device that tar alone sees ends the bringing back', async () => {
    await inVolume(async ({ root, apply }) => {
      const disk: Member = { name: 'disk', type: 'block-device', devmajor: 7, devminor: 0 }
      expect((await apply(await unseen(disk), [])).code).not.toBe(0)
      expect((await run('find', ['.', '-type', 'b', '-o', '-type', 'c'], { cwd: root })).trim()).toBe('')
    })
  })
})

/** The rights of root in a usual container. */
const everyRight = ['--user', 'any', '--group', 'any', '--capabilities', '--devices']

/**
 * A global header makes tar use another name for the following members; `rootfs` does not read such headers.
 */
async function unseen(member: Member) {
  const saved = await forged([member], ['f- other'])
  await writeFile(saved.archive, Buffer.concat([globalHeader('path=other'), await readFile(saved.archive)]))
  return saved
}

function globalHeader(record: string): Buffer {
  const length = [...Array(200).keys()].find(it => it === `${it} ${record}\n`.length) ?? 0
  const body = Buffer.alloc(512)
  body.write(`${length} ${record}\n`)
  const head = Buffer.alloc(512)
  head.write('pax_global_header', 0)
  head.write('0000644\x000000000\x000000000\x00', 100, 'latin1')
  head.write(`${length.toString(8).padStart(11, '0')}\x0000000000000\x00        g`, 124, 'latin1')
  head.write('ustar\x0000', 257, 'latin1')
  const sum = head.reduce((total, byte) => total + byte, 0)
  head.write(`${sum.toString(8).padStart(6, '0')}\x00 `, 148, 'latin1')
  return Buffer.concat([head, body])
}
