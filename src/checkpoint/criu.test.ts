import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, chown, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { findCompiler } from '../../build/compile.ts'
import { criuBundle } from '../../native/criu-bundle.ts'
import { systemClock } from '../kube/clock.ts'
import { systemRandom } from '../kube/random.ts'
import { applyDelta, encodeDelta } from './delta.ts'
import { credentialsOf } from './images/credentials.ts'
import { newPidNamespace, rearmTimers } from './images/edits.ts'
import { parsePagemap } from './images/pagemap.ts'
import { readStats } from './images/stats.ts'
import { tasksOf } from './images/tasks.ts'
import { createGenerationStore } from './store.ts'
import { manifestOf, slotKey } from './testing/generation.ts'

const run = promisify(execFile)
const able = process.platform === 'linux' && process.arch === 'x64' && process.getuid?.() === 0

describe.skipIf(!able)(`images of CRIU itself ${able ? '' : '(needs root on Linux on x86_64)'}`, () => {
  let root: string
  let criu: (...args: readonly string[]) => Promise<unknown>
  let pid: number
  let status: string
  let threads: readonly number[]

  const images = (name: string) => join(root, name)
  const dump = async (name: string) => {
    await mkdir(images(name))
    await criu('dump', '-t', String(pid), '-D', images(name), '-o', 'dump.log', '--leave-running')
  }

  // One process is dumped twice, and then killed.
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'criu-'))
    const { directory } = await criuBundle()
    // CRIU has not yet probed this kernel, so this run writes its cache.
    const env = { ...process.env, UNDERSTUDY_KDAT: 'write' }
    criu = (...args) =>
      run(
        join(directory, 'ld.so'),
        [
          ...['--library-path', join(directory, 'lib'), '--preload', join(directory, 'criu-shim.so')],
          ...[join(directory, 'criu'), ...args, '--manage-cgroups=ignore', '-v1'],
        ],
        { env },
      )
    await chown(root, 1000, 1001)
    const ticker = join(root, 'ticker')
    const source = join(import.meta.dirname, 'testing/ticker.c')
    await run(await findCompiler({}), [
      '-O1',
      '-Wall',
      '-Wextra',
      '-Werror',
      '-pthread',
      '-o',
      ticker,
      source,
    ])
    const child = spawn(ticker, [root], { stdio: 'ignore', detached: true, uid: 1000, gid: 1001 })
    pid = child.pid ?? 0
    const gone = once(child, 'exit')
    try {
      await vi.waitFor(() => access(join(root, 'ready')))
      await dump('first')
      await dump('second')
      status = await readFile(`/proc/${pid}/status`, 'utf8')
      threads = (await readdir(`/proc/${pid}/task`)).map(Number)
    } finally {
      child.kill('SIGKILL')
      await gone
    }
  }, 300_000)
  afterAll(() => rm(root, { recursive: true, force: true }))

  test('tasks and what they may do are those of the process', async () => {
    const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*?)[ \\t]*$`, 'm').exec(status)?.[1] ?? ''
    const [task, ...others] = await tasksOf(images('first'))
    expect(others).toEqual([])
    expect(task).toMatchObject({ pid, group: pid, session: pid })
    expect([...(task?.threads ?? [])].sort()).toEqual([...threads].sort())
    expect(threads).toHaveLength(2)
    const credentials = await credentialsOf(images('first'))
    expect(credentials.map(({ tid }) => tid).sort()).toEqual([...threads].sort())
    for (const { uids, gids, groups, capabilities, noNewPrivileges, seccomp } of credentials) {
      expect([uids.real, uids.effective, uids.saved, uids.filesystem].join('\t')).toBe(field('Uid'))
      expect([gids.real, gids.effective, gids.saved, gids.filesystem].join('\t')).toBe(field('Gid'))
      expect(groups.join(' ')).toBe(field('Groups'))
      expect(capabilities).toEqual({
        inheritable: field('CapInh'),
        permitted: field('CapPrm'),
        effective: field('CapEff'),
        bounding: field('CapBnd'),
        ambient: field('CapAmb'),
      })
      expect(noNewPrivileges).toBe(field('NoNewPrivs') === '1')
      expect(['disabled', 'strict', 'filter'].indexOf(seccomp)).toBe(Number(field('Seccomp')))
    }
  })

  test('page map, pages and statistics agree', async () => {
    const dir = images('first')
    const map = await parsePagemap('pagemap', await readFile(join(dir, `pagemap-${pid}.img`)))
    const pages = map.runs.reduce((sum, run) => sum + run.pages, 0)
    const { size } = await stat(join(dir, `pages-${map.pagesId}.img`))
    expect(size).toBe(pages * 4096)
    const stats = await readStats(dir, 'dump')
    expect(stats.pagesWritten).toBe(pages)
    expect(stats.frozen).toBeGreaterThan(0)
  })

  test('the difference between two dumps is what the process has changed', async () => {
    const storeIn = (name: string) =>
      createGenerationStore({
        dir: join(root, name),
        budget: 1 << 28,
        clock: systemClock,
        random: systemRandom,
      })
    const [source, holder] = [storeIn('source'), storeIn('holder')]
    for (const [index, name] of ['first', 'second'].entries()) {
      const draft = await source.begin(slotKey, index + 1)
      await cp(images(name), join(draft.dir, 'containers/app/criu'), { recursive: true })
      await draft.commit(manifestOf(index + 1))
    }
    const [base, next] = [source.open(slotKey, 1), source.open(slotKey, 2)]
    if (base === undefined || next === undefined) throw new Error('not committed')
    const theirs = await applyDelta(encodeDelta(undefined, base), undefined, await holder.begin(slotKey, 1))
    let bytes = 0
    const counted = async function* () {
      for await (const chunk of encodeDelta(base, next)) {
        bytes += chunk.length
        yield chunk
      }
    }
    const copy = await applyDelta(counted(), theirs, await holder.begin(slotKey, 2))
    expect(copy.manifest).toEqual(next.manifest)
    expect(bytes).toBeLessThan(0.05 * next.manifest.bytes)
  })

  test('edits change what they are to change, once, and CRIU restores the process with a timer that runs', async () => {
    const dir = images('second')
    const inventory = await readFile(join(dir, 'inventory.img'))
    await cp(dir, images('nested'), { recursive: true })
    expect(await newPidNamespace(images('nested'))).toBe(true)
    expect(await newPidNamespace(images('nested'))).toBe(false)
    const edited = await readFile(join(images('nested'), 'inventory.img'))
    expect(edited.filter((byte, index) => byte !== inventory[index])).toHaveLength(1)
    expect(edited.length).toBe(inventory.length)

    expect(await rearmTimers(dir)).toBe(1)
    expect(await rearmTimers(dir)).toBe(0)
    await criu(
      'restore',
      '-D',
      dir,
      '-o',
      'restore.log',
      '--restore-detached',
      '--pidfile',
      join(root, 'pid'),
    )
    try {
      await writeFile(join(root, 'go'), '')
      const ticks = async () => Number(await readFile(join(root, 'ticks'), 'utf8'))
      const first = await vi.waitFor(ticks)
      await vi.waitFor(async () => expect(await ticks()).toBeGreaterThan(first + 3))
    } finally {
      process.kill(Number(await readFile(join(root, 'pid'), 'utf8')), 'SIGKILL')
    }
    expect((await readStats(dir, 'restore')).pagesRestored).toBeGreaterThan(0)
  }, 60_000)
})
