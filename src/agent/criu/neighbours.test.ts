/** A process of the pod that runs while a container is saved or restored: real processes, the real CRIU. */
import { copyFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { compileStatic } from '../../../build/compile.ts'
import { run } from '../../../build/run.ts'
import { start } from '../../../init-waker/testing/process.ts'
import {
  holdCommandOf,
  serveCommand,
  type TestContainer,
  type TestContainerRequest,
} from '../preflight/test-container.ts'
import { cannotDump, hostFs, startTestNode, type TestNode } from '../testing/node.ts'
import { outcomeOf, type TestContainers, testContainersOf } from '../testing/test-containers.ts'
import { nestedChildren } from './tree.ts'

/** Five processes of three threads each, which share pipes and sockets. */
const source = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
static void *wait_here(void *unused) { for (;;) pause(); return unused; }
static void rest(void) {
  pthread_t thread;
  for (int i = 0; i < 2; i++) if (pthread_create(&thread, 0, wait_here, 0)) exit(3);
  wait_here(0);
}
int main(void) {
  int ends[2];
  for (int i = 0; i < 4; i++) {
    if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) exit(3);
    if (fork() == 0) rest();
  }
  puts("ready");
  fflush(stdout);
  rest();
}
`

describe.skipIf(cannotDump !== undefined)(
  `D10.hostile: somebody who is awake while others stand still ${cannotDump ?? ''}`,
  () => {
    let node: TestNode
    let tools = ''
    let testContainers: TestContainers

    beforeAll(async () => {
      node = await startTestNode()
      testContainers = testContainersOf(node, 8_000)
      tools = join(node.directory, 'tools')
      await mkdir(tools)
      await run('sh', ['-c', 'printf %s "$SOURCE" | gcc -w -static -pthread -x c -o "$OUT" -'], {
        env: { SOURCE: source, OUT: join(tools, 'program') },
      })
      const neighbour = await compileStatic(join(import.meta.dirname, '../../../native/testing/neighbour.c'))
      await copyFile(neighbour, join(tools, 'neighbour'))
    })
    afterEach(() => testContainers.stop())
    afterAll(() => node?.dispose())

    const testContainer = (request: Pick<TestContainerRequest, 'role' | 'command'>) =>
      testContainers.start({ ...request, options: ['--user', '1000', '--volume', `${tools}:/opt`] })
    const primary = async () => {
      const started = await testContainer({ role: 'primary', command: ['/opt/program'] })
      await expect.poll(() => started.output()).toContain('ready')
      return started
    }
    /** Starts a process of another user, without any capability, in the network namespace of the pod. */
    const another = async (of: TestContainer, ...what: readonly string[]) => {
      const rights = ['--reuid', '2000', '--regid', '2000', '--clear-groups', '--no-new-privs']
      const started = await start('nsenter', [
        ...['-t', String(of.init.pid), '--net', '--'],
        ...['setpriv', ...rights, '--bounding-set', '-all', join(tools, 'neighbour'), ...what],
      ])
      await expect.poll(() => started.stdout()).toContain('awake')
      return started
    }
    const saves = async (of: TestContainer, times: number) => {
      const ends: string[] = []
      for (let i = 0; i < times; i++) ends.push(await outcomeOf(testContainers.save(of)))
      return ends
    }

    it.each([
      ['one connection', 1],
      ['all that a queue of one holds', 2],
      ['500 connections', 500],
    ])('another container of the pod cannot take the place of what CRIU waits for: %s', async (_, count) => {
      const app = await primary()
      await using neighbour = await another(app, 'connect', String(count))
      expect(await saves(app, 5)).toEqual(Array(5).fill('done'))
      expect(neighbour.stdout()).not.toContain('heard')
    })

    it('nor are descriptors put into what is restored', async () => {
      const from = await testContainers.save(await primary())
      const understudy = await testContainer({
        role: 'understudy',
        command: [...holdCommandOf('app').slice(0, -serveCommand.length), '/opt/program'],
      })
      await using neighbour = await another(understudy, 'send')
      for (let i = 0; i < 5; i++) {
        const clone = await testContainers.restore(understudy, from)
        await node.driver.discard(clone)
        await expect.poll(() => nestedChildren(hostFs, understudy.init)).toEqual([])
      }
      expect(neighbour.stdout()).toContain('sent to')
    })

    it('who sees the processes, and is of their user, finds no log of the node open in them', async () => {
      const app = await primary()
      await using neighbour = await start('nsenter', [
        ...['-t', String(app.init.pid), '--mount', '--pid', '--net', '--setuid', '1000', '--setgid', '1000'],
        ...['--', '/opt/neighbour', 'look'],
      ])
      await expect.poll(() => neighbour.stdout()).toContain('awake')
      expect(await saves(app, 5)).toEqual(Array(5).fill('done'))
      expect(neighbour.stdout()).toBe('awake\n')
    })
  },
)
