// Long because every case restores the same large test container.
import { existsSync } from 'node:fs'
import { cp, mkdir, readdir, readFile, readlink, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { buildProgram } from '../../../native/build.ts'
import { AgentError, isAgentError } from '../../api/agent-errors.ts'
import { CheckpointError } from '../../checkpoint/errors.ts'
import { readStats } from '../../checkpoint/images/stats.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { systemClock } from '../../kube/clock.ts'
import type { ProcessRef } from '../container/process.ts'
import { isSame, statusOf, treeOf } from '../container/process.ts'
import { findObstacles } from '../preflight/obstacles/find.ts'
import { holdCommandOf, serveCommand, type TestContainer } from '../preflight/test-container.ts'
import type { SentinelClient } from '../sentinel/client.ts'
import { cannotDump, hostFs, startTestNode, type TestNode } from '../testing/node.ts'
import { type TestContainers, testContainersOf } from '../testing/test-containers.ts'
import { createCopies } from './copies.ts'
import { createMemoryDriver } from './driver.ts'
import type { Clone, LocatedPod, PageServer } from './memory-driver.ts'
import { lazyBytes, pagesDeadlineMs } from './pages.ts'

const deadlineMs = 30_000
const large = 160
const signal = new AbortController().signal

test('who brings pages has longer the more there are, and never as long as its directory is kept', () => {
  expect(pagesDeadlineMs(1e9)).toBeGreaterThan(pagesDeadlineMs(1e8))
  expect(pagesDeadlineMs(1e15)).toBeLessThan(3_600_000)
})

describe.skipIf(cannotDump !== undefined)(`memory that comes later ${cannotDump ?? ''}`, () => {
  let node: TestNode
  let saved: Stored
  let looks = ''
  let testContainers: TestContainers

  beforeAll(async () => {
    node = await startTestNode()
    testContainers = testContainersOf(node, deadlineMs)
    looks = dirname(await buildProgram('inspect'))
    const primary = await fillTestContainer('primary', large)
    saved = await save(await locate(primary))
    await testContainers.stop()
  })
  afterEach(() => testContainers.stop())
  afterAll(() => node?.dispose())

  const fillTestContainer = async (role: string, mebibytes: number) => {
    const started = await testContainers.start({
      role,
      command: ['/bin/test-container', 'fill', '8080', String(mebibytes)],
    })
    await vi.waitFor(async () => expect(await ask(started, 8081)).toBe('0 0'))
    return started
  }
  const understudy = (role = 'understudy') =>
    testContainers.start({
      role,
      command: [
        ...holdCommandOf('app').slice(0, -serveCommand.length),
        '/bin/test-container',
        'fill',
        '8080',
        '1',
      ],
    })
  const locate = (of: TestContainer, promoted?: boolean) => testContainers.locate(of, promoted)
  /** Returns the answer at a port; empty: none. */
  const ask = async (of: TestContainer, port: number): Promise<string> => {
    const log = join(node.directory, `answer-${port}`)
    await rm(log, { force: true })
    await node.sentinel.spawn({
      ...{ target: of.init, namespaces: 'keep', rights: 'Everything', cgroup: 'stay', deadlineMs, log },
      files: [{ fd: 200, path: node.programs.directory, mode: 'd' }],
      arguments: ['/proc/self/fd/200/test-container', 'ask', String(port)],
    })
    const said = (await readFile(log, 'utf8')).trim()
    return /^cell:/.test(said) ? '' : said
  }
  const save = (of: LocatedPod) => testContainers.save(of)
  const restore = async (into: TestContainer, from = saved): Promise<Clone> =>
    node.driver.restore(await locate(into), from, { deadlineMs, signal, lazily: 'Large' })
  /**
   * Restores, and stops the page server when the restore ends, so that only a few pages have arrived. The server defers
   * most pages until CRIU's restore is over. Until then, it runs for a millisecond at a time: if it ran freely, all
   * pages could arrive before the test sees the end of the restore. (A stop does it no harm: native/criu-shim/criu-shim.c,
   * 4.) If this process pauses while the server runs, most pages arrive all the same: then it restores again.
   */
  const restoreHeld = async (into: TestContainer): Promise<Clone> => {
    for (let attempts = 0; attempts < 10; attempts += 1) {
      const clone = await tryToHold(into)
      if ((await residentOf(clone)) < (large / 2) * 2 ** 20) return clone
      await node.driver.discard(clone)
    }
    throw new Error('the pages never come later')
  }
  const tryToHold = async (into: TestContainer): Promise<Clone> => {
    let bringing: ProcessRef | undefined
    const sentinel: SentinelClient = {
      ...node.sentinel,
      async spawnDetached(...given) {
        bringing = await node.sentinel.spawnDetached(...given)
        return bringing
      },
      async spawn(...given) {
        if (bringing === undefined) return node.sentinel.spawn(...given)
        // For a moment, the process that starts the server has the server's name.
        const { pid } = bringing
        const pids = await vi.waitFor(async () => {
          const found = await named(pid, server)
          expect(found).toHaveLength(1)
          return found
        })
        let isOver = false
        const over = node.sentinel.spawn(...given).finally(() => {
          isOver = true
        })
        // Once all pages have arrived, it ends.
        const runs = () => pids.every(pid => existsSync(`/proc/${pid}`))
        while (!isOver && runs()) {
          signalAll(pids, 'SIGCONT')
          await systemClock.sleep(1)
          if (runs()) signalAll(pids, 'SIGSTOP')
          await systemClock.sleep(5)
        }
        return over
      },
    }
    return createMemoryDriver({ ...node.dependencies, sentinel }).restore(await locate(into), saved, {
      ...{ deadlineMs, signal, lazily: 'Large' },
    })
  }
  const residentOf = async (clone: Clone) => {
    const fields = (await statusOf(hostFs, clone.containers[0]?.app.pid ?? 0))?.fields
    return Number.parseInt(fields?.get('VmRSS') ?? '0', 10) * 1024
  }
  const serverOf = (clone: Clone) => {
    const [server] = clone.pages?.servers ?? []
    if (server === undefined) throw new Error('nothing is to come')
    return server
  }
  /** Returns the processes of a tree with matching names. */
  const named = async (root: number, name: RegExp): Promise<number[]> => {
    const pids = await treeOf(hostFs, root)
    const names = await Promise.all(
      pids.map(async pid => (await statusOf(hostFs, pid))?.fields.get('Name') ?? ''),
    )
    return pids.filter((_, at) => name.test(names[at] ?? ''))
  }
  const server = /^(ld\.so|criu)/
  const guardian = /^pages$/
  const signalAll = (pids: readonly number[], name: NodeJS.Signals) => {
    expect(pids).toHaveLength(1)
    for (const pid of pids) process.kill(pid, name)
  }
  const signalOf = async (clone: Clone, name: RegExp, what: NodeJS.Signals) =>
    signalAll(await named(serverOf(clone).server.pid, name), what)
  const ended = async ({ server: { pid, start } }: PageServer) =>
    !(await isSame(hostFs, { pid, start })) || (await statusOf(hostFs, pid))?.state === 'Z'
  const nothingLeft = async (clone: Clone) => {
    await expect.poll(() => ended(serverOf(clone))).toBe(true)
    expect(existsSync(clone.pages?.directory ?? '')).toBe(false)
  }
  const codeOf = (promise: Promise<unknown>) =>
    promise.then(
      () => 'fulfilled',
      (error: unknown) => (isAgentError(error) ? error.code : String(error)),
    )
  const running = async (of: TestContainer) => (await locate(of, true)).containers[0]?.app !== undefined

  test('D5.lazy: it answers before its memory is there, and all of it is right when it has come', async () => {
    const into = await understudy()
    const clone = await restore(into)
    expect(clone.pages?.servers).toHaveLength(1)
    const { pagesRestored } = await readStats(serverOf(clone).work, 'restore')
    expect(pagesRestored).toBeLessThan(1000)
    await node.driver.thaw(clone)
    expect(await ask(into, 8080)).toBe('1')
    // A child that the app forks now gets its pages, too.
    expect(await ask(into, 8081)).toBe('0 0')
    expect(await node.driver.settle(clone, signal)).toEqual({ ...clone, pages: undefined })
    expect(await residentOf(clone)).toBeGreaterThanOrEqual(large * 2 ** 20)
    await nothingLeft(clone)
    expect(await ask(into, 8081)).toBe('0 0')
    await node.driver.discard(clone)
  })

  test('D10.page-server: who brings it has no number in the container, and may send no signal', async () => {
    const into = await understudy()
    const clone = await restoreHeld(into)
    const pids = await treeOf(hostFs, serverOf(clone).server.pid)
    const space = (pid: number | 'self') => readlink(`/proc/${pid}/ns/pid`)
    for (const pid of pids) expect(await space(pid)).toBe(await space('self'))
    const inside = (await readdir(`/proc/${into.init.pid}/root/proc`)).filter(name => /^\d+$/.test(name))
    const own = await treeOf(hostFs, into.init.pid)
    expect(inside).toHaveLength(own.length)
    const [criu = 0] = await named(serverOf(clone).server.pid, server)
    const fields = (await statusOf(hostFs, criu))?.fields
    expect(fields?.get('NoNewPrivs')).toBe('1')
    expect(fields?.get('Seccomp_filters')).toBe('2')
    await node.driver.discard(clone)
  })

  test('when it has come the generation may go, and it can be saved again', async () => {
    const [into, second] = [await understudy(), await understudy('second')]
    const dir = join(node.directory, 'generations', 'copy')
    await mkdir(dir, { recursive: true })
    await cp(saved.dir, dir, { recursive: true })
    const clone = await node.driver.thaw(await restore(into, { ...saved, dir }))
    // The generation may go even before: the page server reads links elsewhere.
    await rm(dir, { recursive: true })
    await node.driver.settle(clone, signal)
    expect(await ask(into, 8081)).toBe('0 0')
    const again = await save(await locate(into, true))
    const next = await node.driver.thaw(await restore(second, again))
    await node.driver.settle(next, signal)
    expect(await ask(second, 8081)).toBe('0 0')
  })

  test('D10.tmpfs: copies have their room before they are made, and give it back when they are gone', async () => {
    const lent = new Set<object>()
    const lend = (_: string, bytes: number) => {
      if (bytes > most) throw new CheckpointError('StoreFull', 'no room')
      const one = {}
      lent.add(one)
      return () => void lent.delete(one)
    }
    let most = 0
    const copies = createCopies({ bytes: 0, share: 1, lend })
    const driver = createMemoryDriver({ ...node.dependencies, copies })
    const into = await understudy()
    const bring = async (lazily?: 'Large') =>
      driver.restore(await locate(into), saved, { deadlineMs, signal, ...(lazily && { lazily }) })
    await expect(bring()).rejects.toMatchObject({ code: 'StoreFull' })
    expect(await readdir(join(node.directory, 'work'))).toEqual([])
    most = 2 ** 20
    await driver.discard(await bring())
    expect(lent.size).toBe(0)
    // The room stays reserved while the page server reads from the copies.
    const first = await bring('Large')
    expect(lent.size).toBe(1)
    await driver.discard(first)
    expect(lent.size).toBe(0)
    const second = await driver.thaw(await bring('Large'))
    await driver.settle(second, signal)
    expect(lent.size).toBe(0)
  })

  test('while it comes nothing is saved, and nothing of it is in the way', async () => {
    const into = await understudy()
    const clone = await restoreHeld(into)
    await node.driver.thaw(clone)
    const located = await locate(into, true)
    expect(await codeOf(save(located))).toBe('PagesComing')
    expect(await findObstacles(located, { fs: hostFs, programs: looks })).toEqual([])
    await signalOf(clone, server, 'SIGCONT')
    await node.driver.settle(clone, signal)
    await save(await locate(into, true))
  })

  test('D5.lazy-lost: when who brings it dies the app does not go on with zeros: it ends, and that is told', async () => {
    const into = await understudy()
    const clone = await restoreHeld(into)
    await node.driver.thaw(clone)
    const app = clone.containers[0]?.app
    if (app === undefined) throw new Error('no app')
    await node.sentinel.watch('app', app)
    const told = new Promise(resolve => node.sentinel.onDeath(resolve))
    // The app waits for a page that will never arrive: no answer may be made of zeros.
    const asked = ask(into, 8081).catch(() => '')
    const settled = codeOf(node.driver.settle(clone, signal))
    await signalOf(clone, server, 'SIGKILL')
    expect(await told).toMatchObject({ name: 'app' })
    expect(await asked).not.toMatch(/^\d/)
    // Zeros that it read may have killed the app before its guardian did.
    expect(await settled).toMatch(/^(PagesLost|CloneLost)$/)
    await nothingLeft(clone)
    await node.sentinel.unwatch('app')
  })

  test('when its guardian dies as well an agent ends the app, also one that has not restored it', async () => {
    const into = await understudy()
    const clone = await restoreHeld(into)
    await node.driver.thaw(clone)
    await signalOf(clone, guardian, 'SIGKILL')
    await signalOf(clone, server, 'SIGKILL')
    const other = node.connect()
    // Zeros that it read may have killed the app before.
    expect(await codeOf(other.driver.settle(clone, signal))).toMatch(/^(PagesLost|CloneLost)$/)
    expect(await isSame(hostFs, clone.containers[0]?.app ?? { pid: 0, start: 0 })).toBe(false)
    await nothingLeft(clone)
    other.sentinel.close()
  })

  test('it goes on coming when the agent and the sentinel are replaced', async () => {
    const into = await understudy()
    const clone = await restoreHeld(into)
    const stopped = await named(serverOf(clone).server.pid, server)
    const { pid } = await node.sentinel.hello()
    process.kill(pid, 'SIGKILL')
    await node.launch()
    const other = node.connect()
    const found = await other.driver.clonesOf(await locate(into))
    expect(found).toEqual(clone)
    await other.driver.thaw(clone)
    signalAll(stopped, 'SIGCONT')
    await other.driver.settle(clone, signal)
    // Repeats it, like an agent that missed the result.
    await other.driver.settle(clone, signal)
    expect(await ask(into, 8081)).toBe('0 0')
    await nothingLeft(clone)
    // The sentinel that started this process is gone, so the test kills it.
    process.kill(into.init.pid, 'SIGKILL')
    other.sentinel.close()
  })

  test.each(['Frozen', 'Thawed'] as const)('who discards it, %s, ends who brings it', async stage => {
    const into = await understudy()
    const clone = await restoreHeld(into)
    if (stage === 'Thawed') await node.driver.thaw(clone)
    await node.driver.discard(clone)
    await nothingLeft(clone)
    expect(await running(into)).toBe(false)
    // Later restores have all room again; a second one ends the page server of the first.
    const next = await restoreHeld(into)
    const last = await restoreHeld(into)
    expect(await ended(serverOf(next))).toBe(true)
    await node.driver.discard(last)
    await nothingLeft(last)
  })

  test('one that was lost before its thaw is not thawed', async () => {
    const into = await understudy()
    const clone = await restoreHeld(into)
    await signalOf(clone, server, 'SIGKILL')
    // If the thaw came first, the guardian's kill would follow: a death like that of any running app.
    await expect.poll(() => ended(serverOf(clone))).toBe(true)
    expect(await codeOf(node.driver.thaw(clone))).toBe('CloneLost')
    await node.driver.discard(clone)
    await nothingLeft(clone)
  })

  test('small memory, and memory for which nobody asks to come later, comes at once', async () => {
    const small = await save(await locate(await fillTestContainer('small', 1)))
    expect(small.manifest.containers[0]?.memoryBytes).toBeLessThan(lazyBytes)
    for (const [from, lazily] of [
      [small, 'Large'],
      [saved, undefined],
    ] as const) {
      const into = await understudy(`at-once-${lazily}`)
      const clone = await node.driver.restore(await locate(into), from, {
        ...{ deadlineMs, signal },
        ...(lazily && { lazily }),
      })
      expect(clone.pages).toBeUndefined()
      await node.driver.thaw(clone)
      expect(await ask(into, 8081)).toBe('0 0')
    }
    const into = await understudy('never')
    const lazily = { isPossible: () => false, failed: () => undefined }
    expect(
      (
        await createMemoryDriver({ ...node.dependencies, lazily }).restore(await locate(into), saved, {
          ...{ deadlineMs, signal, lazily: 'Large' },
        })
      ).pages,
    ).toBeUndefined()
  })

  const refuse = async () => {
    throw new AgentError('SentinelRefused', 'spawn: refused busy')
  }
  const runAnother: SentinelClient['spawnDetached'] = request =>
    node.sentinel.spawnDetached({ ...request, arguments: ['/bin/test-container'] })

  test.each([
    ['a sentinel that refuses it', refuse],
    ['a program that ends at once', runAnother],
  ] as const)('with %s everything comes at once', async (_, spawnDetached) => {
    const into = await understudy()
    const failed: unknown[] = []
    const sentinel: SentinelClient = { ...node.sentinel, spawnDetached }
    const clone = await createMemoryDriver({
      ...node.dependencies,
      sentinel,
      lazily: { isPossible: () => true, failed: error => failed.push(error) },
    }).restore(await locate(into), saved, { deadlineMs, signal, lazily: 'Large' })
    expect(clone.pages).toBeUndefined()
    expect(failed).toEqual([expect.objectContaining({ code: 'PagesFailed' })])
    await node.driver.thaw(clone)
    expect(await ask(into, 8081)).toBe('0 0')
    expect(await readdir(join(node.directory, 'work'))).toEqual([])
  })
})
