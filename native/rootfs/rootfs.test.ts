import { readlinkSync } from 'node:fs'
import { copyFile, cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compileStatic } from '../../build/compile.ts'
import { run } from '../../build/run.ts'
import { buildWaker } from '../../init-waker/build.ts'
import { cannotUnshare, childrenOf, start, stateOf } from '../../init-waker/testing/process.ts'
import { eventually } from '../../test/support/eventually.ts'
import { buildNodeTools } from '../build.ts'
import { type Container, type Done, enter, startContainer, targetOf } from '../testing/container.ts'

const rootfs = '/proc/self/fd/200/rootfs'
let scratch = ''
let tools = ''
let xattr = ''
let waker = ''
beforeAll(async () => {
  if (cannotUnshare !== undefined) return
  scratch = await mkdtemp(join(tmpdir(), 'understudy-layer-'))
  tools = join(scratch, 'tools')
  await cp((await buildNodeTools()).directory, tools, { recursive: true })
  await copyFile(await compileStatic(join(import.meta.dirname, '../testing/strict.c')), join(tools, 'strict'))
  xattr = await compileStatic(join(import.meta.dirname, '../testing/xattr.c'))
  waker = await buildWaker()
})
afterAll(async () => {
  if (scratch !== '') await rm(scratch, { recursive: true, force: true })
})

/** The image of every container. */
const image = `
  mkdir -p etc/opaque etc/gone etc/replaced data etc/mounted
  echo image > etc/conf; echo old > etc/opaque/old; echo x > etc/gone/x; echo y > etc/replaced/y; echo del > etc/deleted
  echo f > etc/becomes-directory; ln -s conf etc/link; echo m > etc/mounted/of-image`

/** Runs a script in a root directory of that image with a writable layer, and resolves with the layer. */
async function layerAfter(script: string): Promise<string> {
  const directory = await mkdtemp(join(scratch, 'source-'))
  const setup = `
    set -e; mkdir lower upper work root; (cd lower; ${image})
    mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work root
    cd root; ${script}`
  await run('unshare', ['--mount', 'sh', '-c', setup], {
    cwd: directory,
    env: { XATTR: xattr, NODE: process.execPath },
  })
  return join(directory, 'upper')
}

interface Saved {
  readonly archive: string
  readonly list: string
}

const host = () => targetOf(process.pid)

async function save(verb: 'save' | 'list', directory: string, ...flags: readonly string[]): Promise<Saved> {
  const into = await mkdtemp(join(scratch, 'saved-'))
  const saved = { archive: join(into, 'archive'), list: join(into, 'list') }
  await writeFile(saved.archive, '')
  await writeFile(saved.list, '')
  const files = { 201: `<${directory}`, 202: `>${saved.archive}`, 203: `>${saved.list}` }
  expect(await enter(tools, await host(), 'keep', [rootfs, verb, ...flags], files)).toEqual(ok)
  return saved
}

const ok: Done = { code: 0, stdout: '', stderr: '' }
const lines = async ({ list }: Saved) =>
  (await readFile(list, 'utf8')).split('\0').filter(line => line !== '')

/** Starts a container of that image with an empty layer. */
async function placeholder(...strict: readonly string[]): Promise<Container> {
  const directory = await mkdtemp(join(scratch, 'target-'))
  await mkdir(join(directory, 'lower'))
  await run('sh', ['-c', image], { cwd: join(directory, 'lower') })
  const command = ['/waker', 'hold', '--dir', '/orders']
  return startContainer({ tools, directory, programs: [waker], command, strict })
}

/** The rights of root in a usual container. */
const everyRight = ['--user', 'any', '--group', 'any', '--capabilities', '--devices']

async function apply(
  container: Container,
  saved: Saved,
  bringing: readonly string[] = everyRight,
): Promise<Done> {
  const own = await save('list', join(container.directory, 'upper'), '--of', String(container.pid))
  const files = { 202: `<${saved.archive}`, 203: `<${saved.list}`, 204: `<${own.list}` }
  return enter(tools, container, 'keep', [rootfs, 'apply', ...bringing], files)
}

/** Prints everything below the current directory: type, mode, owner, links and content. */
const stateScript = `find etc data ! -type s -printf '%p %y %m %U:%G %l ' \\( -type d -printf '\\n' -o -printf '%n\\n' \\) | LC_ALL=C sort
  find etc data -type f -exec md5sum {} + | LC_ALL=C sort -k 2`

const state = (root: string): Promise<string> => run('sh', ['-c', stateScript], { cwd: root })

describe.skipIf(cannotUnshare !== undefined)(`rootfs ${cannotUnshare ?? ''}`, () => {
  const everything = `
    echo changed > etc/conf; chown 5:6 etc/conf; chmod 4640 etc/conf
    rm -r etc/opaque; mkdir etc/opaque; echo new > etc/opaque/new
    rm -r etc/gone etc/replaced; rm etc/deleted etc/becomes-directory etc/link
    echo file > etc/replaced; mkdir etc/becomes-directory; echo in > etc/becomes-directory/in; ln -s /nowhere etc/link
    mkdir -p data/a/b; chmod 1770 data/a; echo x > data/a/b/f; ln data/a/b/f data/hard; mkfifo data/fifo; mknod data/null c 1 3
    "$XATTR" set user.key data/a/b/f value; truncate -s 40M data/holes; echo end >> data/holes
    touch "$(printf 'data/two\\nlines')" data/--file=x "data/$(printf '%0200d' 0)"; touch -d 2001-02-03 data/old
    "$NODE" -e 'require("net").createServer().listen("data/socket", () => process.kill(process.pid, 9))' || true
    test -S data/socket`

  test('another container of the image becomes the same, deletions and all', async () => {
    const upper = await layerAfter(everything)
    const saved = await save('save', upper, '--layer')
    // The overlay's own attributes do not belong to the application.
    expect(await lines(saved)).toEqual(
      expect.arrayContaining([
        'w- etc/deleted',
        'w- etc/gone',
        'o- etc/opaque',
        'f- etc/conf',
        'f- data/hard',
      ]),
    )
    await using target = await placeholder()
    expect(await apply(target, saved)).toEqual(ok)

    const root = `/proc/${target.pid}/root`
    const source = await mkdtemp(join(scratch, 'merged-'))
    const overlay = `mount -t overlay overlay -o lowerdir=${upper}:${upper}/../lower ${source} && cd ${source}`
    const merged = `${overlay} && ${stateScript}`
    const wanted = await run('unshare', ['--mount', 'sh', '-c', merged])
    expect(await state(root)).toBe(wanted)
    expect((await run(xattr, ['get', 'user.key', `${root}/data/a/b/f`])).trim()).toBe('value')
    expect(Number(await run('stat', ['-c', '%b', `${root}/data/holes`]))).toBeLessThan(100)
    expect((await run('stat', ['-c', '%y', `${root}/data/old`])).slice(0, 10)).toBe('2001-02-03')
    expect(await readdir(`${root}/data`)).not.toContain('socket')
  })

  test('the same layer gives the same archive, and an empty one can be applied', async () => {
    const upper = await layerAfter(`${everything}; rm data/holes`)
    const [one, two] = [await save('save', upper, '--layer'), await save('save', upper, '--layer')]
    expect((await readFile(one.archive)).equals(await readFile(two.archive))).toBe(true)
    await using target = await placeholder()
    const empty = await mkdtemp(join(scratch, 'empty-'))
    expect(await apply(target, await save('save', empty, '--layer'))).toEqual(ok)
    expect(await readFile(`/proc/${target.pid}/root/etc/conf`, 'utf8')).toBe('image\n')
  })

  describe('at a gate', () => {
    async function saveAtGate(upper: string, programs = tools) {
      const into = await mkdtemp(join(scratch, 'gated-'))
      const saved = { archive: join(into, 'archive'), list: join(into, 'list') }
      const descriptors = `200<${programs} 201<${upper} 202>${saved.archive} 203>${saved.list} 205<${into}`
      const program = await start('bash', [
        '-c',
        `exec ${descriptors}; exec ${join(tools, 'rootfs')} save --layer --gate`,
      ])
      return { saved, program, open: () => writeFile(join(into, 'go'), '') }
    }

    const waitingTar = (pid: number) =>
      eventually(() => {
        const [tar] = childrenOf(pid)
        if (tar === undefined || readlinkSync(`/proc/${tar}/root`) === '/') throw new Error('no tar yet')
        return tar
      })

    test('tar has started before it opens, and takes what is there then', async () => {
      const upper = await layerAfter(`${everything}; rm data/holes`)
      const { saved, program, open } = await saveAtGate(upper)
      await using _ = program
      await waitingTar(program.pid)
      await writeFile(join(upper, 'data/late'), 'late')
      await open()
      expect([await program.exit, program.stderr()]).toEqual([0, ''])
      const other = await save('save', upper, '--layer')
      expect((await readFile(saved.archive)).equals(await readFile(other.archive))).toBe(true)
      expect(await lines(saved)).toEqual(await lines(other))
      expect(await lines(saved)).toContain('f- data/late')
    })

    test('whoever is killed at it leaves no tar behind', async () => {
      const { program } = await saveAtGate(await layerAfter('true'))
      await using _ = program
      const tar = await waitingTar(program.pid)
      process.kill(program.pid, 'SIGKILL')
      await eventually(() => expect(stateOf(tar)).toBeUndefined())
    })

    test('a tar that cannot start is a failure', async () => {
      const { program, open } = await saveAtGate(await layerAfter(everything), scratch)
      await using _ = program
      await eventually(() => expect(program.stderr()).toMatch(/^rootfs: tar: /))
      await open()
      expect(await program.exit).toBe(125)
    })
  })

  test('a read-only root is left as it is', async () => {
    const saved = await save('save', await layerAfter('mkdir made-by-runtime'), '--layer')
    await using target = await placeholder('root')
    expect(await apply(target, saved)).toEqual(ok)
    expect(await readdir(`/proc/${target.pid}/root`)).not.toContain('made-by-runtime')
  })

  test('a later memory takes away what an earlier one has left', async () => {
    const first = await save(
      'save',
      await layerAfter('mkdir data/d; echo 1 > data/d/f; echo 2 > data/g'),
      '--layer',
    )
    const second = await save('save', await layerAfter('echo 3 > data/g; echo 4 > data/d'), '--layer')
    const third = await save('save', await layerAfter('true'), '--layer')
    await using target = await placeholder()
    const data = `/proc/${target.pid}/root/data`
    expect(await apply(target, first)).toEqual(ok)
    expect(await apply(target, second)).toEqual(ok)
    expect(await readFile(`${data}/d`, 'utf8')).toBe('4\n')
    expect(await apply(target, third)).toEqual(ok)
    expect(await readdir(data)).toEqual([])
    expect(await readFile(`/proc/${target.pid}/root/etc/conf`, 'utf8')).toBe('image\n')
  })

  test.each([
    ['a deleted file', 'rm etc/conf'],
    ['a changed file', 'echo new >> etc/conf'],
    ['a replaced file', 'echo new > etc/new; mv etc/new etc/conf'],
  ])('what cannot be taken back is said: %s of the image', async (_, script) => {
    const first = await save('save', await layerAfter(script), '--layer')
    const second = await save('save', await layerAfter('true'), '--layer')
    await using target = await placeholder()
    expect(await apply(target, first)).toEqual(ok)
    expect(await apply(target, second)).toEqual({
      ...ok,
      code: 3,
      stderr: expect.stringMatching(/^rootfs: etc\/conf: changed by an earlier memory/),
    })
  })

  test('what is mounted is neither saved nor touched', async () => {
    const upper = await layerAfter(
      'rm -r etc/mounted; echo x > etc/other; mkdir -p orders; echo no > orders/file',
    )
    const saved = await save('save', upper, '--layer', '--exclude', 'orders')
    expect((await lines(saved)).filter(line => line.includes('orders'))).toEqual([])
    const whole = await save('save', upper, '--layer')
    await using target = await placeholder()
    const orders = `/proc/${target.pid}/root/orders`
    await writeFile(`${orders}/kept`, '')
    expect(await apply(target, whole)).toEqual(ok)
    expect((await readdir(orders)).sort()).toEqual(['hold.key', 'hold.sock', 'kept'])
    expect(await readdir(`/proc/${target.pid}/root/etc`)).not.toContain('mounted')
  })

  test('D10.files: a volume becomes what it was, and its links lead nowhere', async () => {
    const source = await mkdtemp(join(scratch, 'volume-'))
    await run('sh', ['-c', 'mkdir -p etc data; echo 1 > etc/f; ln -s /etc data/out; chown 7:8 data'], {
      cwd: source,
    })
    const saved = await save('save', source)
    const target = await mkdtemp(join(scratch, 'volume-'))
    const outside = await mkdtemp(join(scratch, 'outside-'))
    await writeFile(join(outside, 'f'), 'mine')
    // A directory there was replaced by a link to another place.
    await symlink(outside, join(target, 'etc'))
    await writeFile(join(target, 'stale'), '')
    await mkdir(join(target, 'old/deep'), { recursive: true })
    const files = { 201: `<${target}`, 202: `<${saved.archive}`, 203: `<${saved.list}` }
    expect(await enter(tools, await host(), 'keep', [rootfs, 'apply', '--directory'], files)).toEqual(ok)
    expect(await state(target)).toBe(await state(source))
    expect((await readdir(target)).sort()).toEqual(['data', 'etc'])
    expect(await readFile(join(outside, 'f'), 'utf8')).toBe('mine')
  })

  test('a list that leads out is refused', async () => {
    const saved = await save('save', await mkdtemp(join(scratch, 'plain-')))
    const target = await mkdtemp(join(scratch, 'plain-'))
    for (const bad of ['d- ../x', 'd- /x', 'f- a//b', 'f- a/./b', 'x- a', 'f- ', 'f-a']) {
      await writeFile(saved.list, `${bad}\0`)
      const files = { 201: `<${target}`, 202: `<${saved.archive}`, 203: `<${saved.list}` }
      const done = await enter(tools, await host(), 'keep', [rootfs, 'apply', '--directory'], files)
      expect(done, bad).toMatchObject({
        code: 125,
        stderr: expect.stringMatching(/^rootfs: list: not understood/),
      })
    }
  })
})
