// Long because every case dumps and restores the same test containers with the real CRIU.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { mkdir, readdir, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../../../test/support/eventually.ts'
import { isAgentError } from '../../api/agent-errors.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { systemClock } from '../../kube/clock.ts'
import { statusOf, treeOf } from '../container/process.ts'
import {
  holdCommand,
  holdCommandOf,
  serveCommand,
  type TestContainer,
  type TestContainerRequest,
} from '../preflight/test-container.ts'
import type { SentinelClient } from '../sentinel/client.ts'
import { cannotDump, hostFs, startTestNode, type TestNode } from '../testing/node.ts'
import { type TestContainers, testContainersOf } from '../testing/test-containers.ts'
import { createMemoryDriver } from './driver.ts'
import type { LocatedPod, MemoryDriver } from './memory-driver.ts'
import { nestedChildren, runningOf } from './tree.ts'

const deadlineMs = 20_000

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'fulfilled',
    (error: unknown) => (isAgentError(error) ? error.code : String(error)),
  )

describe.skipIf(cannotDump !== undefined)(`driver on real CRIU ${cannotDump ?? ''}`, () => {
  let node: TestNode
  let testContainers: TestContainers
  const signal = new AbortController().signal

  beforeAll(async () => {
    node = await startTestNode()
    testContainers = testContainersOf(node, deadlineMs)
  })
  afterEach(() => testContainers.stop())
  afterAll(() => node?.dispose())

  const primaryTestContainer = (extra: Partial<TestContainerRequest> = {}) =>
    testContainers.start({ role: 'primary', command: serveCommand, ...extra })
  const understudyTestContainer = (extra: Partial<TestContainerRequest> = {}) =>
    testContainers.start({ role: 'understudy', command: holdCommand, ...extra })
  const ask = (of: TestContainer) => testContainers.ask(of)
  const locate = (of: TestContainer, promoted?: boolean) => testContainers.locate(of, promoted)
  const generation = () => testContainers.generation()
  const save = (of: LocatedPod, driver?: MemoryDriver) => testContainers.save(of, driver)
  const restore = (into: TestContainer, from: Stored) => testContainers.restore(into, from)
  const holds = async (of: TestContainer) => {
    await expect.poll(() => nestedChildren(hostFs, of.init)).toEqual([])
    expect((await locate(of, true)).containers[0]?.app).toBeUndefined()
  }
  /** Runs `what` when all processes are stopped and before anything is saved: the sentinel gets no gates to open. */
  const afterStop = (
    what: (sentinel: SentinelClient) => void,
    { sentinel, dependencies }: Pick<TestNode, 'sentinel' | 'dependencies'> = node,
  ): MemoryDriver =>
    createMemoryDriver({
      ...dependencies,
      sentinel: {
        ...sentinel,
        async stop(request, signal) {
          const stopped = await sentinel.stop({ ...request, gates: [] }, signal)
          what(sentinel)
          return stopped
        },
      },
    })

  /** Path of the pages of the pod's container in a generation. */
  const pagesOf = ({ containers: [container] }: LocatedPod, dir: string) =>
    join(dir, `containers/${container?.name}/criu/pages-1.img`)

  test('room that was made before the stop is used, and what is left over of it is cut off', async () => {
    const [primary, understudy] = [await primaryTestContainer(), await understudyTestContainer()]
    for (const count of [1, 2, 3]) expect(await ask(primary)).toBe(`${count} ${count} ${count}`)
    const located = await locate(primary)
    const first = await save(located)
    const name = located.containers[0]?.name
    const pages = (dir: string) => pagesOf(located, dir)
    const { size } = statSync(pages(first.dir))
    for (const wrong of [-4096, 0, 4 * 1024 * 1024]) {
      const { dir, stored } = await generation()
      const atStop: number[] = []
      const sentinel: SentinelClient = {
        ...node.sentinel,
        stop(...given) {
          // Before the stop: CRIU writes as soon as all processes are stopped.
          atStop.push(statSync(pages(dir)).size)
          return node.sentinel.stop(...given)
        },
      }
      const driver = createMemoryDriver({ ...node.dependencies, sentinel })
      const before = { files: [{ path: pages(''), size: size + wrong, sha256: '' }] }
      const saved = stored(await driver.dump(located, dir, { deadlineMs, before, signal }))
      expect(atStop).toEqual([size + wrong])
      const files = (await readdir(join(dir, `containers/${name}/criu`))).filter(it =>
        it.startsWith('pages-'),
      )
      const bytes = files.reduce(
        (sum, it) => sum + statSync(join(dir, `containers/${name}/criu`, it)).size,
        0,
      )
      expect(bytes).toBe(saved.manifest.containers[0]?.memoryBytes)
      // An idle app changes little memory meanwhile.
      expect(Math.abs(statSync(pages(dir)).size - size)).toBeLessThan(1024 * 1024)
      const clone = await restore(understudy, saved)
      await node.driver.thaw(clone)
      expect(await ask(understudy)).toBe('4 4 4')
      await node.driver.discard(clone)
      await holds(understudy)
    }
  })

  test('all is prepared when the caller is asked to stop a primary for longer, and nothing is stopped if it refuses', async () => {
    const primary = await primaryTestContainer()
    expect(await ask(primary)).toBe('1 1 1')
    const located = await locate(primary)
    const first = await save(located)
    const pages = (dir: string) => pagesOf(located, dir)
    const { size } = statSync(pages(first.dir))
    const before = { files: [{ path: pages(''), size, sha256: '' }] }
    const { dir } = await generation()
    let stops = 0
    const sentinel: SentinelClient = {
      ...node.sentinel,
      stop(...given) {
        stops += 1
        return node.sentinel.stop(...given)
      },
    }
    const driver = createMemoryDriver({ ...node.dependencies, sentinel })
    const beforeStop = async () => {
      expect([stops, statSync(pages(dir)).size]).toEqual([0, size])
      // It still runs.
      expect(await ask(primary)).toBe('2 2 2')
      throw new Error('not now')
    }
    await expect(driver.dump(located, dir, { deadlineMs, before, beforeStop, signal })).rejects.toThrow(
      'not now',
    )
    expect(stops).toBe(0)
    expect(await ask(primary)).toBe('3 3 3')
    await save(located)
    expect(await ask(primary)).toBe('4 4 4')
  })

  test('a primary goes on in an understudy from where it was, and from there in another one', async () => {
    const [primary, first, second] = [
      await primaryTestContainer(),
      await understudyTestContainer(),
      await understudyTestContainer({ role: 'second' }),
    ]
    for (const count of [1, 2, 3]) expect(await ask(primary)).toBe(`${count} ${count} ${count}`)
    const saved = await save(await locate(primary))
    expect(await ask(primary)).toBe('4 4 4')

    const clone = await restore(first, saved)
    expect(clone).toMatchObject({
      slot: saved.manifest.slot,
      generation: saved.manifest.generation,
      epoch: 2,
      stage: 'Frozen',
    })
    const app = clone.containers[0]?.app.pid ?? 0
    expect((await treeOf(hostFs, app)).length).toBe(2)
    expect(await runningOf(hostFs, app)).toEqual([])
    await node.driver.thaw(clone)
    expect(await ask(first)).toBe('4 4 4')
    expect(await ask(primary)).toBe('5 5 5')

    const promoted = await locate(first, true)
    expect(promoted.containers[0]?.app?.pid).toBe(app)
    const again = await save(promoted)
    expect(await ask(first)).toBe('5 5 5')
    await node.driver.thaw(await restore(second, again))
    expect(await ask(second)).toBe('5 5 5')
  })

  test('D7.moment: layer, volumes and /dev/shm are those of the same moment, and nothing else is', async () => {
    const volumeOf = (uid: string) => join(node.directory, `pods/${uid}/volumes/kubernetes.io~empty-dir/data`)
    const withVolume = (podUid: string) => ({ podUid, options: ['--volume', `${volumeOf(podUid)}:/data`] })
    const [primary, understudy] = [
      await primaryTestContainer(withVolume('with-volume')),
      await understudyTestContainer(withVolume('also-with-volume')),
    ]
    const within = (of: TestContainer, path: string) => `/proc/${of.init.pid}/root${path}`
    await ask(primary)
    await writeFile(within(primary, '/data/kept'), 'volume')
    await mkdir(within(primary, '/etc/deep'), { recursive: true })
    await symlink('/proc/1/root/outside', within(primary, '/etc/deep/link'))
    await writeFile(within(primary, '/dev/shm/shared'), 'memory')
    await writeFile(within(primary, '/bin/replaced'), 'new')
    await rm(within(primary, '/bin/removed'))
    await writeFile(within(understudy, '/data/stale'), '')
    await writeFile(within(understudy, '/stale'), '')
    await writeFile(within(understudy, '/dev/shm/stale'), '')

    const saved = await save(await locate(primary))
    expect(saved.manifest.volumes).toEqual(['data'])
    await writeFile(within(primary, '/data/later'), '')
    await node.driver.thaw(await restore(understudy, saved))
    expect(await ask(understudy)).toBe('2 2 2')
    expect(await readFile(within(understudy, '/tmp/log'), 'utf8')).toBe('1 1 1\n2 2 2\n')
    expect(await readdir(within(understudy, '/data'))).toEqual(['kept'])
    expect(await readFile(within(understudy, '/data/kept'), 'utf8')).toBe('volume')
    expect(await readdir(within(understudy, '/dev/shm'))).toEqual(['shared'])
    expect(await readlink(within(understudy, '/etc/deep/link'))).toBe('/proc/1/root/outside')
    expect((await readdir(within(understudy, '/bin'))).sort()).toEqual([
      'replaced',
      'test-container',
      'waker',
    ])
    expect(await readdir(within(understudy, '/'))).not.toContain('stale')

    // Dumps the promoted understudy: nothing of the first restore may interfere.
    await rm(within(understudy, '/bin/replaced'))
    const again = await save(await locate(understudy, true))
    const third = await understudyTestContainer({ role: 'third', ...withVolume('third-with-volume') })
    await node.driver.thaw(await restore(third, again))
    expect((await readdir(within(third, '/bin'))).sort()).toEqual(['test-container', 'waker'])
    expect(await ask(third)).toBe('3 3 3')
  })

  test('who stood still goes on when all is saved, unless there turns out to be more to do', async () => {
    const primary = await primaryTestContainer()
    const located = await locate(primary)
    const shm = `/proc/${located.containers[0]?.init.pid}/root/dev/shm`
    const went: boolean[] = []
    const listed = async (meanwhile: () => void) => {
      const sentinel: SentinelClient = {
        ...node.sentinel,
        async isDone(name) {
          const done = await node.sentinel.isDone(name)
          went.push(done)
          return done
        },
      }
      const { dir } = await save(located, afterStop(meanwhile, { ...node, sentinel }))
      return readFileSync(join(dir, 'shm.list'), 'latin1')
    }
    const wentOn = async () => {
      expect(await listed(() => undefined)).toBe('')
      return went.splice(0)
    }
    // The agent resumes the primary when no processor was free for the sentinel.
    await expect.poll(wentOn).toEqual([true])
    // /dev/shm was empty when the driver looked, before the stop.
    expect(await listed(() => writeFileSync(join(shm, 'late'), 'x'))).toContain('late')
    // Now the driver sees the file before the stop, so it does not ask whether the sentinel resumed the primary.
    expect(await listed(() => undefined)).toContain('late')
    expect(went).toEqual([false])
    expect(await ask(primary)).toBe('1 1 1')
  })

  test('what CRIU wants to know of connections it has been told before', async () => {
    const primary = await primaryTestContainer()
    const { workDirectory, sentinel } = node.dependencies
    const told: boolean[] = []
    const driver = createMemoryDriver({
      ...node.dependencies,
      sentinel: {
        ...sentinel,
        continue: async name => {
          told.push(
            readdirSync(workDirectory, { recursive: true, encoding: 'utf8' }).some(it =>
              it.endsWith('/asked'),
            ),
          )
          return sentinel.continue(name)
        },
      },
    })
    const saved = async () => {
      await save(await locate(primary), driver)
      return told.at(-1)
    }
    // CRIU asks for itself when no processor was free.
    await expect.poll(saved).toBe(true)
  })

  test('D7.measured: what is said of a dump is measured', async () => {
    const primary = await primaryTestContainer()
    await ask(primary)
    const { manifest } = await save(await locate(primary))
    expect(manifest.frozenSeconds).toBeGreaterThan(0)
    expect(manifest.skewSeconds).toBeLessThan(manifest.frozenSeconds)
    expect(manifest.criu).toMatch(/^4\.[2-9]/)
    const [image] = manifest.containers
    expect(image).toMatchObject({ name: 'app', imageId: 'cell', rootPid: 1 })
    expect(image?.memoryBytes).toBeGreaterThan(4096)
    expect(image?.frozenMicroseconds).toBeGreaterThan(0)
    expect(image?.stdio).toEqual({
      0: '/dev/null',
      1: expect.stringMatching(/^pipe:/),
      2: expect.stringMatching(/^pipe:/),
    })
    // The server has two threads, and a child.
    expect(image?.credentials).toHaveLength(3)
  })

  test('an understudy is refreshed again and again, and holds whenever it has nothing', async () => {
    const [primary, understudy] = [await primaryTestContainer(), await understudyTestContainer()]
    for (const count of [1, 2, 3]) {
      expect(await ask(primary)).toBe(`${count} ${count} ${count}`)
      const clone = await restore(understudy, await save(await locate(primary)))
      if (count < 3) await node.driver.discard(clone)
      if (count < 3) await holds(understudy)
      else await node.driver.thaw(clone)
    }
    expect(await ask(understudy)).toBe('4 4 4')
  })

  test('refreshes leave nothing behind', async () => {
    const [primary, understudy] = [await primaryTestContainer(), await understudyTestContainer()]
    await ask(primary)
    const located = await locate(primary)
    const sentinel = (await node.sentinel.hello()).pid
    const refresh = async () => {
      const { dir, stored } = await generation()
      const saved = stored(await node.driver.dump(located, dir, { deadlineMs, signal }))
      await node.driver.discard(await restore(understudy, saved))
      await rm(dir, { recursive: true })
    }
    /** Each with its file: one that closes meanwhile is no leak. */
    const descriptors = async () => {
      const named = (await readdir('/proc/self/fd')).map(async fd => {
        const file = await readlink(`/proc/self/fd/${fd}`).catch(() => undefined)
        return file === undefined ? [] : [`${fd} ${file}`]
      })
      return (await Promise.all(named)).flat()
    }
    const left = async () => ({
      descriptors: await descriptors(),
      ofSentinel: (await readdir(`/proc/${sentinel}/fd`)).length,
      children: await treeOf(hostFs, sentinel),
      mounts: (await readFile(`/proc/${understudy.init.pid}/mountinfo`, 'utf8')).split('\n').length,
      ofPrimary: (await readFile(`/proc/${primary.init.pid}/mountinfo`, 'utf8')).split('\n').length,
      files: (await readdir(node.directory, { recursive: true })).filter(name => !/^cells/.test(name)).sort(),
      layer: await readdir(`/proc/${understudy.init.pid}/root`, { recursive: false }),
      groups: (await readFile(`/proc/${understudy.init.pid}/cgroup`, 'utf8')).trim(),
    })
    /** Processes and mounts take a moment to disappear, on a busy machine a longer one. */
    const settled = async () => {
      let last = await left()
      for (let same = 0; same < 10; ) {
        await systemClock.sleep(50)
        const now = await left()
        same = isDeepStrictEqual(now, last) ? same + 1 : 0
        last = now
      }
      return last
    }
    await refresh()
    const before = await settled()
    for (let count = 0; count < 10; count++) await refresh()
    await eventually(async () => {
      const after = await left()
      const added = after.descriptors.filter(each => !before.descriptors.includes(each))
      expect({ ...after, descriptors: added }).toEqual({ ...before, descriptors: [] })
    })
    expect(await ask(primary)).toBe('2 2 2')
  })

  test('a restore takes away the clone that is still there', async () => {
    const [primary, understudy] = [await primaryTestContainer(), await understudyTestContainer()]
    await ask(primary)
    const saved = await save(await locate(primary))
    const old = await restore(understudy, saved)
    await restore(understudy, saved)
    expect(await statusOf(hostFs, old.containers[0]?.app.pid ?? 0)).toBeUndefined()
    expect(await nestedChildren(hostFs, understudy.init)).toHaveLength(1)
  })

  test('another agent finds the clone of an earlier one and brings it on stage', async () => {
    const [primary, understudy] = [await primaryTestContainer(), await understudyTestContainer()]
    await ask(primary)
    const clone = await restore(understudy, await save(await locate(primary)))
    const other = node.connect()
    const found = await other.driver.clonesOf(await locate(understudy))
    expect(found).toEqual(clone)
    await other.driver.thaw(clone)
    expect(await ask(understudy)).toBe('2 2 2')
    expect((await node.driver.clonesOf(await locate(understudy)))?.stage).toBe('Thawed')
    // An agent that follows a crash between the two steps repeats the thaw.
    await node.driver.thaw(clone)
    expect(await ask(understudy)).toBe('3 3 3')
    await node.driver.discard(clone)
    await holds(understudy)
    other.sentinel.close()
  })

  test('a clone that runs is none that lies frozen, whatever was told of it', async () => {
    const [primary, understudy] = [await primaryTestContainer(), await understudyTestContainer()]
    await ask(primary)
    const clone = await restore(understudy, await save(await locate(primary)))
    expect((await node.driver.clonesOf(await locate(understudy)))?.stage).toBe('Frozen')
    // Simulates an agent that ended between the two steps of a thaw.
    await node.sentinel.treeContinue(clone.containers[0]?.app ?? { pid: 0, start: 0 })
    expect((await node.driver.clonesOf(await locate(understudy)))?.stage).toBe('Thawed')
    await node.driver.discard(clone)
    await holds(understudy)
  })

  test('a clone that died is told as lost', async () => {
    const [primary, understudy] = [await primaryTestContainer(), await understudyTestContainer()]
    await ask(primary)
    const clone = await restore(understudy, await save(await locate(primary)))
    process.kill(clone.containers[0]?.app.pid ?? 0, 'SIGKILL')
    await expect.poll(() => nestedChildren(hostFs, understudy.init)).toEqual([])
    expect(await node.driver.clonesOf(await locate(understudy))).toBeUndefined()
    expect(await codeOf(node.driver.thaw(clone))).toBe('CloneLost')
    await node.driver.discard(clone)
    await holds(understudy)
  })

  test('D7.deadline: past its deadline a dump is given up anywhere, and the primary goes on', async () => {
    const primary = await primaryTestContainer()
    await ask(primary)
    const located = await locate(primary)
    const codes = new Set<string>()
    for (let at = 1; at <= 12; at++) {
      const { dir } = await generation()
      codes.add(await codeOf(node.driver.dump(located, dir, { deadlineMs: at * 2, signal })))
      expect(await ask(primary)).toBe(`${at + 1} ${at + 1} ${at + 1}`)
    }
    codes.delete('fulfilled')
    expect([...codes]).toEqual(['DumpExpired'])
    await save(located)
  })

  test('an aborted dump leaves nothing stopped', async () => {
    const primary = await primaryTestContainer()
    await ask(primary)
    const abort = new AbortController()
    const driver = afterStop(() => abort.abort(new Error('not now')))
    const { dir } = await generation()
    const dumping = driver.dump(await locate(primary), dir, { deadlineMs, signal: abort.signal })
    await expect(dumping).rejects.toThrow('not now')
    expect(await ask(primary)).toBe('2 2 2')
  })

  test('D7.continue: when the connection to the sentinel ends during a stop, the primary goes on', async () => {
    const primary = await primaryTestContainer()
    await ask(primary)
    const other = node.connect()
    const driver = afterStop(sentinel => sentinel.close(), other)
    const { dir } = await generation()
    const located = await locate(primary)
    expect(await codeOf(driver.dump(located, dir, { deadlineMs: 600_000, signal }))).toBe('SentinelLost')
    expect(await ask(primary)).toBe('2 2 2')
    await save(located)
  })

  test.each([
    ['goes on', false],
    // Simulates a SIGCONT before the gate opens: the CRIU at the gate must not take part in the next stop.
    ['that went on before its gate was opened can be saved', true],
  ])('when the sentinel itself dies during a stop, the primary %s', async (_, early) => {
    const primary = await primaryTestContainer()
    await ask(primary)
    const { pid } = await node.sentinel.hello()
    const located = await locate(primary)
    const stopped = early ? await treeOf(hostFs, located.containers[0]?.app?.pid ?? 0) : []
    const driver = afterStop(() => {
      process.kill(pid, 'SIGKILL')
      for (const each of stopped) process.kill(each, 'SIGCONT')
    })
    const { dir } = await generation()
    expect(await codeOf(driver.dump(located, dir, { deadlineMs, signal }))).toMatch(/^Sentinel/)
    await node.launch()
    expect(await ask(primary)).toBe('2 2 2')
    await save(located)
    await primary.stop()
    const groups = await readdir('/sys/fs/cgroup', { recursive: true })
    expect(groups.filter(path => path.includes(primary.pod.uid))).toEqual([])
  })

  test('D7.continue: whenever an agent goes away in the middle of a dump, the primary goes on and can be saved', async () => {
    const primary = await primaryTestContainer()
    await ask(primary)
    const located = await locate(primary)
    for (let at = 0; at < 20; at++) {
      const other = node.connect()
      await other.sentinel.hello()
      const { dir } = await generation()
      const dumping = codeOf(other.driver.dump(located, dir, { deadlineMs: 600_000, signal }))
      // From before CRIU runs until after the end of a dump, on any machine.
      const timer = setTimeout(() => other.sentinel.close(), at * 4)
      await dumping
      clearTimeout(timer)
      other.sentinel.close()
      expect(await ask(primary)).toBe(`${at + 2} ${at + 2} ${at + 2}`)
    }
    await save(located)
  })

  test('D7.void: a pod that is told to end while it is stopped is not saved', async () => {
    const [primary, understudy] = [await primaryTestContainer(), await understudyTestContainer()]
    await ask(primary)
    await node.driver.thaw(await restore(understudy, await save(await locate(primary))))
    const driver = afterStop(() => process.kill(understudy.init.pid, 'SIGTERM'))
    const { dir } = await generation()
    expect(await codeOf(driver.dump(await locate(understudy, true), dir, { deadlineMs, signal }))).toBe(
      'DumpVoid',
    )
  })

  test('a CRIU that does not wait for the stop has saved nothing that counts', async () => {
    const primary = await primaryTestContainer()
    await ask(primary)
    const stops: string[] = []
    const sentinel: SentinelClient = {
      ...node.sentinel,
      // Simulates a CRIU that was loaded without the library that implements the gate.
      spawn: async (request, signal) =>
        request.arguments.includes('dump')
          ? { code: 0, signal: undefined, milliseconds: 1, expired: false }
          : node.sentinel.spawn(request, signal),
      stop: async (request, signal) => {
        stops.push(request.name)
        return node.sentinel.stop(request, signal)
      },
    }
    const driver = createMemoryDriver({ ...node.dependencies, sentinel })
    const { dir } = await generation()
    expect(await codeOf(driver.dump(await locate(primary), dir, { deadlineMs, signal }))).toBe('DumpFailed')
    expect(stops).toEqual([])
    expect(await ask(primary)).toBe('2 2 2')
  })

  test('D7.budget: memory that needs more room than there is is not dumped, and the primary goes on', async () => {
    const primary = await primaryTestContainer()
    const located = await locate(primary)
    const name = located.containers[0]?.name
    const { dir } = await save(located)
    const { size } = statSync(join(dir, `containers/${name}/criu/pages-1.img`))
    let stops = 0
    const onStopped = () => {
      stops += 1
    }
    // Too little for CRIU itself, and too little for the last page.
    for (const roomBytes of [1, size - 4096]) {
      const { dir } = await generation()
      const dumping = node.driver.dump(located, dir, { deadlineMs, roomBytes, onStopped, signal })
      await expect(dumping).rejects.toMatchObject({ code: 'StoreFull' })
      for (const file of await readdir(dir, { recursive: true }))
        expect(statSync(join(dir, file)).size).toBeLessThan(size)
      expect(await ask(primary)).toMatch(/^(\d) \1 \1$/)
    }
    // The failed dumps stopped the pod too, and that counts.
    expect(stops).toBeGreaterThan(0)
    const last = await generation()
    await node.driver.dump(located, last.dir, { deadlineMs, roomBytes: size + 2 ** 20, signal })
    expect(await ask(primary)).toBe('3 3 3')
  })

  test('D10.rights: memory with more rights than the understudy is not brought in', async () => {
    const [primary, understudy] = [
      await primaryTestContainer(),
      await understudyTestContainer({ options: ['--user', '1000'] }),
    ]
    await ask(primary)
    const saved = await save(await locate(primary))
    expect(await codeOf(restore(understudy, saved))).toBe('CredentialsExceed')
    await holds(understudy)
  })

  test('a user without any capability, with and without CAP_SYS_RESOURCE here', async () => {
    const user = { options: ['--user', '1000'] }
    const [primary, understudy] = [await primaryTestContainer(user), await understudyTestContainer(user)]
    await ask(primary)
    const clone = await restore(understudy, await save(await locate(primary)))
    await node.driver.thaw(clone)
    expect(await ask(understudy)).toBe('2 2 2')
    const status = await statusOf(hostFs, clone.containers[0]?.app.pid ?? 0)
    expect(status?.fields.get('Uid')?.split('\t')).toEqual(['1000', '1000', '1000', '1000'])
    expect(status?.fields.get('CapBnd')).toBe('0000000000000000')
    expect(status?.fields.get('NoNewPrivs')).toBe('1')
  })

  test('a first process that was to end with its parent outlives CRIU', async () => {
    const [primary, understudy] = [
      await primaryTestContainer({ options: ['--parent-death', '9'] }),
      await understudyTestContainer(),
    ]
    await ask(primary)
    await node.driver.thaw(await restore(understudy, await save(await locate(primary))))
    expect(await ask(understudy)).toBe('2 2 2')
  })

  test('D6.image: another image is not restored', async () => {
    const [primary, understudy] = [await primaryTestContainer(), await understudyTestContainer()]
    const saved = await save(await locate(primary))
    const [image] = saved.manifest.containers
    if (image === undefined) throw new Error('no image')
    const other = { ...saved, manifest: { ...saved.manifest, containers: [{ ...image, imageId: 'other' }] } }
    expect(await codeOf(restore(understudy, other))).toBe('ImageDiffers')
  })

  test('D7.moment: two containers are saved as of one moment, and restored together or not at all', async () => {
    const pair = async (role: string, command: (container: string) => readonly string[]) => {
      const two = [
        await testContainers.start({
          role: `${role}-a`,
          podUid: role,
          container: 'a',
          command: command('a'),
        }),
        await testContainers.start({
          role: `${role}-b`,
          podUid: role,
          container: 'b',
          command: command('b'),
        }),
      ] as const
      const pod = { ...two[0].pod, containers: two.flatMap(it => it.pod.containers) }
      return { two, located: () => node.driver.locate(pod, signal) }
    }
    const primary = await pair('primaries', () => serveCommand)
    const understudy = await pair('understudies', holdCommandOf)
    await ask(primary.two[0])
    await ask(primary.two[1])
    await ask(primary.two[1])
    const saved = await save(await primary.located())
    expect(saved.manifest.containers.map(it => it.name)).toEqual(['a', 'b'])
    const clone = await node.driver.restore(await understudy.located(), saved, { deadlineMs, signal })
    await node.driver.thaw(clone)
    expect(await ask(understudy.two[0])).toBe('2 2 2')
    expect(await ask(understudy.two[1])).toBe('3 3 3')
    await node.driver.discard(clone)

    const broken = join(saved.dir, 'containers', 'b', 'criu', 'pstree.img')
    await writeFile(broken, (await readFile(broken)).subarray(0, 20))
    expect(
      await codeOf(node.driver.restore(await understudy.located(), saved, { deadlineMs, signal })),
    ).not.toBe('fulfilled')
    for (const it of understudy.two) expect(await nestedChildren(hostFs, it.init)).toEqual([])
  })
})
