/** Attempts of a container to gain rights from being saved: real processes, the real CRIU. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { run } from '../../../build/run.ts'
import {
  holdCommandOf,
  serveCommand,
  type TestContainer,
  type TestContainerRequest,
} from '../preflight/test-container.ts'
import { cannotDump, startTestNode, type TestNode } from '../testing/node.ts'
import { outcomeOf, type TestContainers, testContainersOf } from '../testing/test-containers.ts'

/** Each program does one thing, then waits. */
const programs = {
  nothing: '',
  // A child that holds its own memory open: any process may do so, but after a restore the pid may mean another
  // process.
  mem: 'if (fork() == 0) { must(open("/proc/self/mem", O_RDWR)); must(open("/proc/self/maps", O_RDONLY)); wait_here(); } wait(0);',
  directory: 'must(chdir("/proc/self"));',
  // The same, hidden in a socket: no process has the descriptor until another one receives it.
  flight: `int fd = open("/proc/self/mem", O_RDWR), pair[2]; must(fd); must(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
    char byte = 0, space[CMSG_SPACE(sizeof fd)] = {0}; struct iovec data = { &byte, 1 };
    struct msghdr m = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m); c->cmsg_level = SOL_SOCKET; c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd); memcpy(CMSG_DATA(c), &fd, sizeof fd); must(sendmsg(pair[0], &m, 0)); close(fd);`,
  // Kernel memory, which no limit of the container counts.
  queues: `static char bytes[100000]; int pair[2];
    for (int i = 0; i < 40; i++) { must(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair));
      for (int end = 0; end < 2; end++) while (write(pair[end], bytes, sizeof bytes) > 0) ; }`,
} as const

const source = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
static void must(long value) { if (value < 0) { perror("program"); exit(3); } }
static void wait_here(void) { puts("ready"); fflush(stdout); for (;;) pause(); }
int main(int argc, char **argv) {
  (void)argc;
${Object.entries(programs)
  .map(([name, code]) => `  if (!strcmp(argv[1], "${name}")) { ${code} }`)
  .join('\n')}
  wait_here();
}
`

describe.skipIf(cannotDump !== undefined)(
  `D10.hostile: a container that is saved ${cannotDump ?? ''}`,
  () => {
    let node: TestNode
    let tools = ''
    let testContainers: TestContainers

    const testContainer = (request: Pick<TestContainerRequest, 'role' | 'command' | 'options'>) => {
      const { options = ['--user', '1000'] } = request
      return testContainers.start({ ...request, options: [...options, '--volume', `${tools}:/opt`] })
    }
    const running = async (program: keyof typeof programs, more?: readonly string[]) => {
      const command = ['/opt/program', program]
      const started = await testContainer({ role: 'primary', command, ...(more && { options: more }) })
      await expect.poll(() => started.output()).toContain('ready')
      return started
    }
    const dump = (of: TestContainer) => outcomeOf(testContainers.save(of))

    beforeAll(async () => {
      node = await startTestNode()
      testContainers = testContainersOf(node, 60_000)
      tools = join(node.directory, 'tools')
      await mkdir(tools)
      await run('sh', ['-c', 'printf %s "$SOURCE" | gcc -w -static -x c -o "$OUT" -'], {
        env: { SOURCE: source, OUT: join(tools, 'program') },
      })
    })
    afterEach(() => testContainers.stop())
    afterAll(() => node?.dispose())

    it('with nothing of it is saved', async () => {
      expect(await dump(await running('nothing'))).toBe('done')
    })

    it.each([
      ['mem', /an open file of \/proc/],
      ['directory', /an open file of \/proc/],
      ['flight', /unreceived descriptors in a socket/],
      ['queues', /more than 16 MiB of unreceived data in unix sockets/],
    ] as const)('%s: is not saved, and goes on', async (program, reason) => {
      const app = await running(program)
      const said = await dump(app)
      expect(said).toMatch(/^Unsupported: container app: /)
      expect(said).toMatch(reason)
      expect(await dump(app)).toBe(said)
    })

    it('nobody who could take over CRIU is among its processes', async () => {
      expect(await dump(await running('nothing', ['--capability', '12']))).toBe('done')
      await testContainers.stop()
      expect(await dump(await running('nothing', ['--capability', '19']))).toMatch(
        /^Unsupported: container app: process \d+ \(program\) may have SYS_PTRACE/,
      )
    })

    it('nor is one that was put there later, as debuggers are, by the primary or by its understudy', async () => {
      const app = await running('nothing')
      const debugging = new AbortController()
      const debugger_ = node.sentinel.spawn(
        {
          target: app.init,
          rights: 'Everything',
          namespaces: 'keep',
          cgroup: 'join',
          deadlineMs: 60_000,
          log: join(node.directory, 'debugger'),
          files: [],
          arguments: ['/opt/program', 'nothing'],
        },
        debugging.signal,
      )
      debugger_.catch(() => undefined)
      await expect.poll(() => dump(app)).toMatch(/may have .*SYS_ADMIN.*, SYS_PTRACE/)
      debugging.abort()
      await debugger_.catch(() => undefined)
      await expect.poll(() => dump(app)).toBe('done')
      const understudy = await testContainer({
        role: 'understudy',
        command: [...holdCommandOf('app').slice(0, -serveCommand.length), '/opt/program', 'nothing'],
        options: ['--capability', '21'],
      })
      expect(await outcomeOf(testContainers.restore(understudy, await testContainers.save(app)))).toMatch(
        /^Unsupported: .* may have SYS_ADMIN/,
      )
    })
  },
)
