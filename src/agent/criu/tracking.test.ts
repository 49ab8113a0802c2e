import { statSync } from 'node:fs'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { parsePageEntries } from '../../checkpoint/images/pagemap.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { systemClock } from '../../kube/clock.ts'
import { descriptors } from '../container/descriptors.ts'
import { isSame, type ProcessRef } from '../container/process.ts'
import { holdCommandOf, serveCommand, type TestContainer } from '../preflight/test-container.ts'
import { cannotDump, startTestNode, type TestNode } from '../testing/node.ts'
import { type TestContainers, testContainersOf } from '../testing/test-containers.ts'
import { createMemoryDriver } from './driver.ts'
import type { LocatedPod, MemoryDriver } from './memory-driver.ts'
import { createTracking, type TrackedDump, type Tracking } from './tracking.ts'

const deadlineMs = 20_000
const fail = (): never => {
  throw new Error('no generation')
}
const signal = new AbortController().signal

describe.skipIf(cannotDump !== undefined)(`dumps of written pages on real CRIU ${cannotDump ?? ''}`, () => {
  let node: TestNode
  let testContainers: TestContainers

  beforeAll(async () => {
    node = await startTestNode()
    testContainers = testContainersOf(node, deadlineMs)
  })
  afterEach(() => testContainers.stop())
  afterAll(() => node?.dispose())

  /** A driver with tracking, and what its dumps relied on. `afterwards` runs between the preparation and the stop. */
  const tracked = (afterwards = async () => undefined as unknown, isOnRequest = false) => {
    const begun: (TrackedDump | undefined)[] = []
    const warnings: object[] = []
    const trackers: ProcessRef[] = []
    const inner = createTracking({
      ...node.dependencies,
      sentinel: {
        ...node.sentinel,
        async spawnDetached(request) {
          const started = await node.sentinel.spawnDetached(request)
          trackers.push(started)
          return started
        },
      },
      isOnRequest,
      isPossible: () => true,
      log: { warn: fields => warnings.push(fields) },
    })
    const tracking: Tracking = {
      ...inner,
      async begin(...given) {
        const dump = await inner.begin(...given)
        begun.push(dump)
        await afterwards()
        return dump
      },
    }
    return { begun, warnings, trackers, driver: createMemoryDriver({ ...node.dependencies, tracking }) }
  }
  const dump = async (
    driver: MemoryDriver,
    located: LocatedPod,
    base?: Stored,
    isRecordRequested = false,
  ): Promise<Stored> => {
    const { dir, stored } = await testContainers.generation()
    const made = stored(await driver.dump(located, dir, { deadlineMs, base, isRecordRequested, signal }))
    return {
      ...made,
      manifest: { ...made.manifest, source: { pod: 'p', podUid: located.pod.uid, node: 'n' } },
    }
  }

  const fill = (role: string, command: readonly string[], options: readonly string[] = []) =>
    testContainers.start({
      role,
      options,
      command: [...command, '/bin/test-container', 'fill', '8080', '64'],
    })
  /** How many pages of `fill` are wrong. */
  const wrongPages = async (of: TestContainer): Promise<string> => {
    const log = join(node.directory, 'answer')
    await rm(log, { force: true })
    await node.sentinel.spawn({
      ...{ target: of.init, namespaces: 'keep', rights: 'Everything', cgroup: 'stay', deadlineMs, log },
      files: [{ fd: descriptors.programs, path: node.programs.directory, mode: 'd' }],
      arguments: [`/proc/self/fd/${descriptors.programs}/test-container`, 'ask', '8081'],
    })
    return (await readFile(log, 'utf8')).trim()
  }
  const pagesFile = ({ dir }: Stored) => join(dir, 'containers/app/criu/pages-1.img')

  test.each([undefined, 'Always'] as const)(
    'a pod continues elsewhere from an increment; pages arrive late: %s',
    async lazily => {
      const primary = await fill('primary', [])
      const understudy = await fill('understudy', holdCommandOf('app').slice(0, -serveCommand.length))
      const located = await testContainers.locate(primary)
      const { driver, begun } = tracked()
      let base: Stored | undefined
      for (const count of [1, 2, 3]) {
        expect(await testContainers.ask(primary)).toBe(String(count))
        base = await dump(driver, located, base)
      }
      expect(begun.map(it => it?.since !== undefined)).toEqual([false, true, true])
      const from = base ?? fail()
      const options = { deadlineMs, signal, ...(lazily !== undefined && { lazily }) }
      const clone = await driver.restore(await testContainers.locate(understudy), from, options)
      await driver.thaw(clone)
      expect(await testContainers.ask(understudy)).toBe('4')
      await driver.settle(clone, signal)
      expect(await wrongPages(understudy)).toBe('0 0')
      expect(await testContainers.ask(primary)).toBe('4')
      expect(await wrongPages(primary)).toBe('0 0')
    },
    60_000,
  )

  test('a page that changed unnoticed: the audit discards the dump, and the pod is saved whole from then on', async () => {
    const primary = await fill('primary', [])
    const located = await testContainers.locate(primary)
    const { driver, begun, warnings } = tracked()
    await testContainers.ask(primary)
    const base = await dump(driver, located)
    // Now the dump before differs from the memory, as it would if the kernel had missed writes.
    const bytes = await readFile(pagesFile(base))
    for (let at = 0; at < bytes.length; at += 4096) bytes[at] = (bytes[at] ?? 0) ^ 1
    await writeFile(pagesFile(base), bytes)
    await expect(dump(driver, located, base)).rejects.toThrow(/audited pages/)
    expect(warnings).toHaveLength(1)
    const whole = await dump(driver, located, base)
    expect(begun.map(it => it?.since)).toEqual([undefined, base.dir, undefined])
    expect(statSync(pagesFile(whole)).size).toBeGreaterThan(64 * 1024 * 1024)
  }, 60_000)

  test('an application without any rights is tracked', async () => {
    const primary = await fill('primary', [], ['--user', '1000'])
    const located = await testContainers.locate(primary)
    const { driver, begun, warnings } = tracked()
    await testContainers.ask(primary)
    await dump(driver, located, await dump(driver, located))
    expect(warnings).toEqual([])
    expect(begun.at(-1)?.since).toBeDefined()
    expect(await testContainers.ask(primary)).toBe('2')
    expect(await wrongPages(primary)).toBe('0 0')
  }, 60_000)

  test('on request, writes are recorded from one dump to the next, and no longer', async () => {
    const located = await testContainers.locate(await fill('primary', []))
    const { driver, begun, trackers } = tracked(undefined, true)
    expect(driver.recordsOnRequest(located.pod.uid)).toBe(true)
    const before = await dump(driver, located)
    const base = await dump(driver, located, before, true)
    await dump(driver, located, base, true)
    expect(begun.map(it => it?.since)).toEqual([undefined, undefined, base.dir])
    const [tracker = { pid: 0, start: 0 }, ...others] = trackers
    expect(others).toEqual([])
    expect(await isSame(node.dependencies.fs, tracker)).toBe(true)
    await driver.endRecord(located.pod.uid)
    await vi.waitFor(async () => expect(await isSame(node.dependencies.fs, tracker)).toBe(false))
  }, 60_000)

  test('without its tracker, the next dump is whole, and begins another record', async () => {
    const primary = await fill('primary', [])
    const located = await testContainers.locate(primary)
    const { driver, begun, trackers } = tracked()
    await testContainers.ask(primary)
    let base = await dump(driver, located)
    for (const tracker of trackers) await node.sentinel.treeKill(tracker)
    for (let i = 0; i < 3; i += 1) {
      base = await dump(driver, located, base)
      expect(statSync(pagesFile(base)).size).toBeGreaterThan(64 * 1024 * 1024)
    }
    expect(begun.map(it => it && it.since !== undefined)).toEqual([false, undefined, false, true])
    expect(trackers).toHaveLength(2)
    expect(await wrongPages(primary)).toBe('0 0')
  }, 60_000)

  test('only the generation that the last dump became is a base', async () => {
    const primary = await fill('primary', [])
    const located = await testContainers.locate(primary)
    const cut = new AbortController()
    // The second dump fails once its record is prepared, and its tracker stays good.
    const { driver, begun } = tracked(async () => begun.length === 2 && cut.abort(new Error('cut')))
    // It answers once its memory is full: a small process is not tracked, and none of its dumps has a base.
    await testContainers.ask(primary)
    const first = await dump(driver, located)
    const lost = await testContainers.generation()
    const never = { deadlineMs, base: first, signal: cut.signal }
    await expect(driver.dump(located, lost.dir, never)).rejects.toThrow('cut')
    await dump(driver, located, first)
    const last = await dump(driver, located, first)
    const ofAnother = {
      ...last,
      manifest: { ...last.manifest, source: { pod: 'p', podUid: 'u', node: 'n' } },
    }
    await dump(driver, located, await dump(driver, located, ofAnother))
    expect(begun.map(it => it && it.since !== undefined)).toEqual([false, true, false, false, false, true])
  }, 60_000)

  test('a storm of all kinds of writes: an increment has the memory of a full dump, byte for byte', async () => {
    const storm = await testContainers.start({
      role: 'storm',
      command: ['/bin/test-container', 'storm', '8080'],
    })
    const located = await testContainers.locate(storm)
    // Memory moves after the tracker has registered it, and only then the pod is stopped.
    const { driver, begun } = tracked(async () => {
      for (const state of [/^running/, /^paused/]) {
        expect(await testContainers.ask(storm)).toMatch(state)
        await systemClock.sleep(50)
      }
    })
    let base: Stored | undefined
    for (let round = 0; round < 6; round += 1) {
      await systemClock.sleep(100)
      expect(await testContainers.ask(storm)).toMatch(/^paused/)
      base = await dump(driver, located, base)
      const [full, again] = [await dump(node.driver, located), await dump(node.driver, located)]
      const differing = await compare(base.dir, full.dir, again.dir)
      expect(differing, `round ${round}`).toEqual({ differing: [], compared: expect.any(Number) })
      expect(differing.compared).toBeGreaterThan(10_000)
      expect(await testContainers.ask(storm)).toMatch(/^running/)
    }
    expect(begun.map(it => it?.since !== undefined)).toEqual(begun.map((_, index) => index > 0))
  }, 300_000)
})

/** Pages of all processes, by the name of the image and the address. */
async function* pagesOf(dir: string): AsyncGenerator<readonly [string, Buffer]> {
  const containers = join(dir, 'containers')
  for (const container of await readdir(containers)) {
    const images = join(containers, container, 'criu')
    for (const name of (await readdir(images)).filter(it => /^pagemap-.*\.img$/.test(it))) {
      const { pagesId, entries } = await parsePageEntries(name, await readFile(join(images, name)))
      const bytes = await readFile(join(images, `pages-${pagesId}.img`))
      let at = 0
      for (const { address, pages, isHere } of entries)
        for (let page = 0; page < pages; page += 1, at += isHere ? 4096 : 0)
          yield [
            `${name} ${(address + page).toString(16)}`,
            isHere ? bytes.subarray(at, at + 4096) : Buffer.alloc(0),
          ]
    }
  }
}

/** Compares a dump with two full dumps of the same moment; leaves out what differs between these. */
async function compare(dir: string, full: string, again: string) {
  const maps = await Promise.all(
    [dir, full, again].map(async from => {
      const pages = new Map<string, Buffer>()
      for await (const [name, bytes] of pagesOf(from)) pages.set(name, bytes)
      return pages
    }),
  )
  const [own, first, second] = maps as [Map<string, Buffer>, Map<string, Buffer>, Map<string, Buffer>]
  const differing: string[] = []
  let compared = 0
  for (const name of new Set([...own.keys(), ...first.keys()])) {
    const [a, b, c] = [own.get(name), first.get(name), second.get(name)]
    if (b === undefined ? c !== undefined : c === undefined || !b.equals(c)) continue
    compared += 1
    if (a === undefined ? b !== undefined : b === undefined || !a.equals(b)) differing.push(name)
  }
  return { differing, compared }
}
