import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { buildRan } from '../../../native/testing/ran.ts'
import { isAgentError } from '../../api/agent-errors.ts'
import { holdCommand, serveCommand, type TestContainer } from '../preflight/test-container.ts'
import { cannotDump, startTestNode, type TestNode } from '../testing/node.ts'
import { type TestContainers, testContainersOf } from '../testing/test-containers.ts'

const deadlineMs = 20_000
const signal = new AbortController().signal

describe.skipIf(cannotDump !== undefined)(`a hostile container ${cannotDump ?? ''}`, () => {
  let node: TestNode
  let ran: Awaited<ReturnType<typeof buildRan>>
  let testContainers: TestContainers
  beforeAll(async () => {
    node = await startTestNode()
    testContainers = testContainersOf(node, deadlineMs)
    ran = await buildRan()
  })
  afterEach(() => testContainers.stop())
  afterAll(() => node?.dispose())

  type Prepare = (root: string) => Promise<void>
  const put = async (path: string, content: string | { readonly copyOf: string }) => {
    await mkdir(dirname(path), { recursive: true })
    if (typeof content === 'string') await writeFile(path, content)
    else await copyFile(content.copyOf, path)
  }
  const library = () => ({ copyOf: ran.library })
  const program = () => ({ copyOf: ran.program })
  const preload: Prepare = async root => {
    await put(join(root, 'lib/ran.so'), library())
    await put(join(root, 'etc/ld.so.preload'), '/lib/ran.so\n')
  }
  const configuration: Prepare = async root => {
    await put(join(root, 'bin/ran'), program())
    await put(join(root, 'etc/criu/default.conf'), 'action-script /bin/ran\n')
  }
  const plugin: Prepare = root => put(join(root, 'usr/lib/criu/ran.so'), library())
  const onPath: Prepare = async root => {
    for (const directory of ['', 'bin', 'sbin', 'usr/bin', 'usr/sbin', 'usr/local/bin'])
      for (const name of ['sh', 'ip', 'iptables', 'ip6tables', 'nft', 'tar'])
        await put(join(root, directory, name), program())
  }
  /** A process that opens such a fifo for reading waits for a writer for ever. */
  const neverRead: Prepare = async root => {
    for (const path of [
      'etc/gnutls/config',
      'etc/ld.so.cache',
      'etc/selinux/config',
      'etc/criu/default.conf',
    ]) {
      await mkdir(dirname(join(root, path)), { recursive: true })
      execFileSync('mkfifo', [join(root, path)])
    }
  }

  const start = async (role: string, command: readonly string[], prepare: Prepare) => {
    await prepare(join(node.directory, 'cells', role, 'lower'))
    return testContainers.start({ role, command })
  }
  const hasRun = (testContainer: TestContainer) => existsSync(`/proc/${testContainer.init.pid}/root/ran`)
  test.each<[string, Prepare]>([
    ['libraries that the loader is to load first', preload],
    ['a configuration of CRIU that names a program', configuration],
    ['a plugin of CRIU', plugin],
    ['programs that CRIU calls by their names', onPath],
    ['files that are not to be read', neverRead],
  ])(
    'D10.container-files: %s: nothing of them runs when memory is saved and brought back',
    async (_, prepare) => {
      const primary = await start('primary', serveCommand, prepare)
      const understudy = await start('understudy', holdCommand, prepare)
      expect(await testContainers.ask(primary)).toBe('1 1 1')
      // A file in /dev/shm makes `rootfs` run in the container's namespaces too.
      await writeFile(`/proc/${primary.init.pid}/root/dev/shm/shared`, 'x')
      const saved = await testContainers.save(primary)
      expect(hasRun(primary)).toBe(false)

      const located = await testContainers.locate(understudy)
      const restore = (lazily: 'Always' | 'Large') =>
        node.driver.restore(located, saved, { deadlineMs, signal, lazily })
      await node.driver.discard(await restore('Large'))
      const clone = await restore('Always')
      await node.driver.thaw(clone)
      expect(await testContainers.ask(understudy)).toBe('2 2 2')
      await node.driver.settle(clone, signal)
      expect(hasRun(understudy)).toBe(false)
    },
  )

  test('D10.container-files: a CRIU that does not know its kernel asks nothing of the container, but gives up', async () => {
    const primary = await start('primary', serveCommand, onPath)
    await testContainers.ask(primary)
    const [known = ''] = (await readdir(node.programs.directory)).filter(it => it.startsWith('criu.kdat.'))
    const path = join(node.programs.directory, known)
    await rename(path, `${path}.away`)
    try {
      const failure = await testContainers.save(primary).catch((error: unknown) => error)
      expect(isAgentError(failure, 'DumpFailed') && failure.detail).toMatch(
        /what CRIU knows of this kernel cannot be read/,
      )
      expect(hasRun(primary)).toBe(false)
      // Simulates the file of another CRIU.
      await writeFile(path, 'x')
      await expect(testContainers.save(primary)).rejects.toThrow(/cannot be used/)
      expect(hasRun(primary)).toBe(false)
    } finally {
      await rm(path, { force: true })
      await rename(`${path}.away`, path)
    }
    expect(await testContainers.ask(primary)).toBe('2 2 2')
  })
})
