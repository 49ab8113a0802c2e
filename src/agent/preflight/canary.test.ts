import { existsSync } from 'node:fs'
import { mkdir, readFile, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { removeCgroup } from '../../../native/sentinel/testing/cgroup.ts'
import { AgentError } from '../../api/agent-errors.ts'
import { systemClock } from '../../kube/clock.ts'
import { systemRandom } from '../../kube/random.ts'
import { cgroupDirectory, parseCgroup } from '../container/cgroup.ts'
import { mountsOf } from '../container/container.ts'
import type { ProcFs } from '../container/process.ts'
import { cannotDump, hostFs, hostWithCgroup2, startTestNode, type TestNode } from '../testing/node.ts'
import { runCanary } from './canary.ts'
import { askTestContainer, serveCommand, startTestContainer } from './test-container.ts'

const hosts = [
  {
    cgroups: 'as they are mounted here',
    open: async () => ({ ...hostFs, [Symbol.asyncDispose]: async () => undefined }),
  },
  { cgroups: 'of version 2 alone', open: hostWithCgroup2 },
]

describe.skipIf(cannotDump !== undefined).each(hosts)(
  `canary ${cannotDump ?? ''}, cgroups $cgroups`,
  ({ open }) => {
    let host: ProcFs & AsyncDisposable
    let node: TestNode
    beforeAll(async () => {
      host = await open()
      node = await startTestNode(host)
    })
    afterAll(async () => {
      await node?.dispose()
      await host?.[Symbol.asyncDispose]()
    })

    const options = () => ({
      driver: node.driver,
      sentinel: node.sentinel,
      clock: systemClock,
      random: systemRandom,
      fs: host,
      programs: node.programs.directory,
      directory: join(node.directory, 'canary'),
      signal: AbortSignal.timeout(50_000),
    })

    test('a server of processes and threads is saved, and goes on elsewhere from where it was', async () => {
      const result = await runCanary(options())
      expect(result.frozenMs).toBeGreaterThan(0)
      // Other kernels answer with the part that they lack.
      expect(['WriteProtect', 'None']).toContain(result.record.name)
    })

    test('a node whose kernel still loads modules at the first rules of a redirect can redirect', async () => {
      const { sentinel } = node
      let isLoaded = false
      const loading: typeof sentinel = {
        ...sentinel,
        async prepareRedirect() {
          if (isLoaded) return
          isLoaded = true
          throw new AgentError('SentinelRefused', 'grave: failed grave: Operation in progress')
        },
        redirect: async () => ({ microseconds: undefined }),
        undoRedirect: async () => undefined,
      }
      expect((await runCanary({ ...options(), sentinel: loading })).graveProblem).toBeUndefined()
      const without: typeof sentinel = {
        ...loading,
        async prepareRedirect() {
          throw new AgentError('SentinelRefused', 'no nf_tables')
        },
      }
      expect((await runCanary({ ...options(), sentinel: without })).graveProblem).toContain('no nf_tables')
    })

    test('old cgroups that a killed agent has left are removed, and young ones stay', async () => {
      const container = await startTestContainer(options(), { role: 'first', command: serveCommand })
      try {
        const text = await readFile(`${host.proc}/${container.init.pid}/cgroup`, 'utf8')
        const mounts = await mountsOf(host, host.host)
        const groups = parseCgroup(text).flatMap(each => cgroupDirectory(mounts, each) ?? [])
        const group = groups.find(directory => directory.includes('cells/')) ?? ''
        const all = join(host.proc, String(host.host), 'root/sys/fs/cgroup', group, '../..')
        const made = ['podcell-left', 'podcell-new'].map(pod => join(all, pod))
        onTestFinished(() => made.forEach(removeCgroup))
        for (const pod of made) await mkdir(join(pod, 'first'), { recursive: true })
        const longAgo = new Date(Date.now() - 600_000)
        await utimes(join(all, 'podcell-left'), longAgo, longAgo)
        await container.removeAbandoned()
        expect(made.map(pod => existsSync(pod))).toEqual([false, true])
        expect(await askTestContainer(options(), container)).toBe('1 1 1')
      } finally {
        await container.stop()
      }
    })

    test('says that a container of the check has ended, rather than what then failed on it', async () => {
      const { driver, sentinel } = node
      const restore: typeof driver.restore = async (target, stored, how) => {
        for (const { init } of target.containers) await sentinel.treeKill(init)
        return await driver.restore(target, stored, how)
      }
      await expect(runCanary({ ...options(), driver: { ...driver, restore } })).rejects.toThrow(
        /its understudy ended with .*; then: /,
      )
    })
  },
)
