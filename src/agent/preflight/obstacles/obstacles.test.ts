import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { run } from '../../../../build/run.ts'
import { buildProgram } from '../../../../native/build.ts'
import { inOwnProcess } from '../../../../test/support/own-process.ts'
import { hostProcFs, refOf } from '../../container/process.ts'
import type { LocatedPod } from '../../criu/memory-driver.ts'
import { inDescriptors, numbersOf } from './descriptors.ts'
import { findObstacles, inMaps, parseLook } from './find.ts'
import { describeObstacles, obstacles } from './obstacle.ts'

/** Programs that hold one object each, until their input ends. */
const holders = {
  nothing: '',
  io_uring: 'struct io_uring_params p = {0}; must(syscall(SYS_io_uring_setup, 4, &p));',
  mptcp: 'must(socket(AF_INET, SOCK_STREAM, 262));',
  vsock: 'must(socket(40, SOCK_STREAM, 0));',
  shm: 'int id = shmget(IPC_PRIVATE, 4096, 0600); must(id); shmat(id, 0, 0); shmctl(id, IPC_RMID, 0);',
  semaphore: 'must(semget(IPC_PRIVATE, 1, 0600));',
  queue: 'must(msgget(IPC_PRIVATE, 0600));',
  kmsg: 'must(open("/dev/kmsg", O_RDONLY));',
  terminal: 'must(open("/dev/ptmx", O_RDWR));',
  userfault: 'must(syscall(SYS_userfaultfd, 0));',
  namespace:
    'int p[2]; char c; must(pipe(p)); if (fork() == 0) { prctl(PR_SET_PDEATHSIG, 9); must(unshare(CLONE_NEWUTS)); write(p[1], "x", 1); pause(); } read(p[0], &c, 1);',
  many:
    'struct rlimit r; getrlimit(RLIMIT_NOFILE, &r); r.rlim_cur = r.rlim_max; setrlimit(RLIMIT_NOFILE, &r); int p[2], d[5]; char c; must(pipe(p));' +
    'for (int i = 0; i < 5; i++) if ((d[i] = fork()) == 0) { prctl(PR_SET_PDEATHSIG, 9); for (int n = 0; n < 13000; n++) must(open("/dev/null", O_RDONLY)); write(p[1], "x", 1); pause(); }' +
    'for (int i = 0; i < 5; i++) read(p[0], &c, 1);',
  procfs: 'must(open("/proc/self/mem", O_RDWR));',
  inside: 'must(chdir("/proc/self/task"));',
  linked:
    'int fd = open(in("a"), O_CREAT | O_RDWR, 0600); must(fd); must(link(in("a"), in("b"))); must(unlink(in("a")));',
  large:
    'int fd = open(in("c"), O_CREAT | O_RDWR, 0600); must(ftruncate(fd, 65L << 20)); must(unlink(in("c")));',
  harmless:
    'must(open("/dev/null", O_RDWR)); must(open("/dev/urandom", O_RDONLY)); must(epoll_create1(0)); must(inotify_init());' +
    'must(socket(AF_INET, SOCK_STREAM, 0)); must(socket(AF_UNIX, SOCK_DGRAM, 0)); must(eventfd(0, 0));' +
    'must(memfd_create("m", 0)); must(timerfd_create(CLOCK_MONOTONIC, 0)); must(syscall(SYS_pidfd_open, getpid(), 0));' +
    'int fd = open(in("d"), O_CREAT | O_RDWR, 0600); must(write(fd, "x", 1)); must(unlink(in("d")));',
} as const

const source = (): string => `
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
static const char *directory;
static const char *in(const char *name) {
  static char path[4][256]; static int turn; char *it = path[turn++ % 4];
  snprintf(it, 256, "%s/%s", directory, name); return it;
}
static void must(long value) { if (value < 0) { perror("holder"); exit(3); } }
int main(int argc, char **argv) {
  char end; directory = argv[2]; (void)argc; must(unshare(CLONE_NEWIPC));
${Object.entries(holders)
  .map(([name, code]) => `  if (!strcmp(argv[1], "${name}")) { ${code} }`)
  .join('\n')}
  puts("ready"); fflush(stdout);
  while (read(0, &end, 1) > 0) ;
  return 0;
}
`

const root = process.getuid?.() === 0
let directory = ''
let programs = ''
const running: ChildProcess[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'obstacles-'))
  programs = dirname(await buildProgram('inspect'))
  await run('sh', ['-c', 'printf %s "$SOURCE" | gcc -w -x c -o "$OUT" -'], {
    env: { SOURCE: source(), OUT: join(directory, 'holder') },
  })
}, 180_000)
afterEach(async () => {
  for (const child of running.splice(0)) {
    child.stdin?.end()
    child.kill('SIGKILL')
    await once(child, 'exit').catch(() => undefined)
  }
})
afterAll(() => rm(directory, { recursive: true, force: true }))

async function hold(what: keyof typeof holders): Promise<number> {
  const child = spawn(join(directory, 'holder'), [what, directory], { stdio: ['pipe', 'pipe', 'pipe'] })
  running.push(child)
  await Promise.race([
    once(child.stdout ?? child, 'data'),
    once(child, 'exit').then(([code]) => {
      throw new Error(`the holder of ${what} ended with ${code}`)
    }),
  ])
  return child.pid ?? 0
}

async function locatedAs(pid: number): Promise<LocatedPod> {
  const app = await refOf(hostProcFs, pid)
  const container = { name: 'app', containerId: 'x://1', imageId: '', init: app, app, depth: 1, cgroups: [] }
  const pod = { namespace: 'n', name: 'p', uid: 'u', ip: '', containers: [], promoted: false }
  return { pod, containers: [container] }
}

const find = async (pid: number) => findObstacles(await locatedAs(pid), { fs: hostProcFs, programs })

describe.skipIf(!root)('found in real processes (needs root: namespaces and devices)', () => {
  test.each([
    ['io_uring', 'IoUring', /holder: io_uring/],
    ['mptcp', 'Mptcp', /holder: descriptor \d+, MPTCP/],
    ['shm', 'SystemV', /shared memory/],
    ['semaphore', 'SystemV', /1 sets of semaphores/],
    ['queue', 'SystemV', /1 message queues/],
    ['kmsg', 'Device', /\/dev\/kmsg, 1:11/],
    ['terminal', 'Terminal', /\/dev\/ptmx, 5:2|\/dev\/pts\/ptmx/],
    ['userfault', 'KernelObject', /userfaultfd/],
    ['namespace', 'Namespace', /uts/],
    ['procfs', 'ProcFile', /\/proc\/\d+\/mem$/],
    ['inside', 'ProcFile', /\/proc\/\d+\/task$/],
    ['linked', 'LinkedDeletedFile', /\/a$/],
    ['large', 'LargeDeletedFile', /\/c, 68157440 bytes/],
  ] as const)('D6.refused: %s is %s', async (what, kind, detail) => {
    const found = await find(await hold(what))
    expect(found.map(it => it.kind)).toContain(kind)
    expect(found.find(it => it.kind === kind)?.detail).toMatch(detail)
    expect(new Set(found.map(it => it.kind))).toEqual(new Set([kind]))
  })

  test('D6.refused: 65,000 descriptors are not looked at, and cost the agent little memory', async () => {
    const located = await locatedAs(await hold('many'))
    const module = new URL('find.ts', import.meta.url)
    const found = await inOwnProcess(module, 'findObstacles', located, { fs: hostProcFs, programs })
    expect(found.result).toMatchObject([{ kind: 'TooMany', detail: 'more than 50000 open files' }])
    expect(found.grownKiB).toBeLessThan(100 * 1024)
  }, 60_000)

  test('a file on what may not answer is told by its name alone', async () => {
    const pid = await hold('large')
    const look = async (type: string) => {
      const ids = (await readFile(`/proc/${pid}/mountinfo`, 'utf8'))
        .split('\n')
        .map(line => line.split(' ')[0] ?? '')
      return inDescriptors(hostProcFs, pid, { descriptors: 100, types: new Map(ids.map(id => [id, type])) })
    }
    expect((await look('ext4')).map(({ kind }) => kind)).toEqual(['LargeDeletedFile'])
    for (const type of ['nfs4', 'fuse.gcsfuse', 'cifs', 'whatever']) expect(await look(type)).toEqual([])
  })

  test.each(['nothing', 'harmless'] as const)('%s is in nobody’s way', async what => {
    expect(await find(await hold(what))).toEqual([])
  })

  test('who is gone has nothing', async () => {
    const pid = await hold('nothing')
    const app = await refOf(hostProcFs, pid)
    const [child] = running.splice(0)
    child?.kill('SIGKILL')
    await once(child as ChildProcess, 'exit')
    const container = { name: 'app', containerId: 'x', imageId: '', init: app, app, depth: 1, cgroups: [] }
    const pod = { namespace: 'n', name: 'p', uid: 'u', ip: '', containers: [], promoted: false }
    const options = { fs: hostProcFs, programs }
    expect(await findObstacles({ pod, containers: [container] }, options)).toEqual([])
  })
})

test('what is mapped', () => {
  const line = (name: string) => `7f0000000000-7f0000001000 rw-s 00000000 00:01 7                ${name}`
  const of = (name: string) => inMaps(line(name)).map(it => it.kind)
  expect(of('/SYSV0000002a (deleted)')).toEqual(['SystemV'])
  expect(of('/dev/nvidia0')).toEqual(['Device'])
  expect(of('anon_inode:[io_uring]')).toEqual(['IoUring'])
  for (const fine of ['/dev/zero (deleted)', '/dev/shm/x', '/usr/lib/a.so', '[heap]', '/memfd:a (deleted)'])
    expect(of(fine)).toEqual([])
})

test('protocols', () => {
  const of = (protocol: string) => parseLook(`socket 7 3 ${protocol}\ndone\n`).map(it => it.kind)
  for (const fine of ['TCP', 'TCPv6', 'UDP', 'UDPLITEv6', 'UNIX', 'UNIX-STREAM', 'NETLINK', 'PACKET', 'RAW'])
    expect(of(fine)).toEqual([])
  for (const foreign of ['SCTP', 'SCTPv6', 'AF_VSOCK', 'SMC', 'XDP', 'ALG'])
    expect(of(foreign)).toEqual(['ForeignSocket'])
  expect([of('MPTCP'), of('MPTCPv6')]).toEqual([['Mptcp'], ['Mptcp']])
})

test('numbers of devices', () => {
  expect(numbersOf(0x103)).toEqual({ major: 1, minor: 3 })
  expect(numbersOf(0x8801)).toEqual({ major: 136, minor: 1 })
  expect(numbersOf(0x10000a01)).toEqual({ major: 10, minor: 0x10001 })
})

test('one line for people: each cure once, however many there are', () => {
  const many = Array.from({ length: 9 }, (_, at) => ({
    ...({ kind: 'Mptcp', container: 'web', pid: at } as const),
    detail: `web: descriptor ${at}, MPTCP`,
  }))
  expect(describeObstacles(many)).toBe(
    `container web has an MPTCP socket (web: descriptor 0, MPTCP, web: descriptor 1, MPTCP, web: descriptor 2, MPTCP and 6 more): ${obstacles.Mptcp.cure}`,
  )
})
