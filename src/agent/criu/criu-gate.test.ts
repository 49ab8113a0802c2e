/** Attacks of a container on CRIU before its dump: real processes, the real CRIU. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from '../../../build/run.ts'
import { isAgentError } from '../../api/agent-errors.ts'
import { systemClock } from '../../kube/clock.ts'
import { readIfThere } from '../container/process.ts'
import { cannotDump, startTestNode, type TestNode } from '../testing/node.ts'
import { testContainersOf } from '../testing/test-containers.ts'
import { parsePrecedence } from './limits.ts'

/** A parent in vfork() does not stop before its child ends, and CRIU has to look at many processes before it. */
const source = `
#include <stdio.h>
#include <unistd.h>
int main(void) {
  for (int i = 0; i < 1500; i++) if (fork() == 0) for (;;) pause();
  if (fork() == 0) {
    puts("ready");
    fflush(stdout);
    if (vfork() == 0) for (;;) pause();
  }
  for (;;) pause();
}
`

const firstTicks = 11
const ticksOf = (stat: string): number =>
  stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(firstTicks, firstTicks + 2)
    .reduce((sum, field) => sum + Number(field), 0)

describe.skipIf(cannotDump !== undefined)(
  `D10.hostile: a container of which not all can be stopped ${cannotDump ?? ''}`,
  () => {
    let node: TestNode
    beforeAll(async () => {
      node = await startTestNode()
    })
    afterAll(() => node?.dispose())

    const childrenOf = async (pid: number): Promise<number[]> =>
      ((await readIfThere(`/proc/${pid}/task/${pid}/children`)) ?? '').split(' ').filter(Boolean).map(Number)
    /** Returns `stat` of the CRIU that the sentinel has started through `nsrun`. */
    const criuStat = async (pid: number): Promise<string | undefined> => {
      const command = (await readIfThere(`/proc/${pid}/cmdline`)) ?? ''
      if (command.startsWith('/proc/self/fd/')) return readIfThere(`/proc/${pid}/stat`)
      if (!command.includes('/nsrun\0') && !command.includes('/sentinel\0')) return undefined
      for (const child of await childrenOf(pid)) {
        const found = await criuStat(child)
        if (found !== undefined) return found
      }
      return undefined
    }

    it('is let go soon, and costs the node little of a processor and nothing of its urgency', async () => {
      const tools = join(node.directory, 'tools')
      await mkdir(tools)
      await run('sh', ['-c', 'printf %s "$SOURCE" | gcc -w -static -x c -o "$OUT" -'], {
        env: { SOURCE: source, OUT: join(tools, 'program') },
      })
      const signal = new AbortController().signal
      const app = await testContainersOf(node, 15_000).start({
        ...{ role: 'primary', command: ['/opt/program'] },
        options: ['--user', '1000', '--volume', `${tools}:/opt`],
      })
      try {
        await expect.poll(() => app.output()).toContain('ready')
        const directory = join(node.directory, 'generations', '1')
        await mkdir(directory, { recursive: true })
        const located = await node.driver.locate(app.pod, signal)
        const { pid: sentinel } = await node.sentinel.hello(signal)
        const seen: string[] = []
        let over = false
        const dump = node.driver
          .dump(located, directory, { deadlineMs: 15_000, signal })
          .catch((error: unknown) => error)
          .finally(() => {
            over = true
          })
        while (!over) {
          const stat = await criuStat(sentinel)
          if (stat !== undefined) seen.push(stat)
          await systemClock.sleep(10)
        }
        const error = await dump
        expect(isAgentError(error, 'StopFailed'), String(error)).toBe(true)
        expect(String(error)).toContain('not all processes stopped')
        expect(seen).not.toEqual([])
        const last = seen.at(-1) ?? ''
        expect(parsePrecedence(last).policy).toBe(0)
        const perSecond = Number(await run('getconf', ['CLK_TCK']))
        expect(ticksOf(last) / perSecond).toBeLessThan(0.5)
      } finally {
        await app.stop()
      }
    })
  },
)
