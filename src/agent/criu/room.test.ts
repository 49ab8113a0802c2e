/** How much room a pod can take from others while it is saved: real processes, the real CRIU. */
import { mkdir, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from '../../../build/run.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { CheckpointError } from '../../checkpoint/errors.ts'
import { systemClock } from '../../kube/clock.ts'
import { systemRandom } from '../../kube/random.ts'
import { startTestContainer, type TestContainer } from '../preflight/test-container.ts'
import { bytesInDraft } from '../tasks/watched-draft.ts'
import { cannotDump, hostFs, startTestNode, type TestNode } from '../testing/node.ts'
import type { DumpOptions, LocatedPod } from './memory-driver.ts'

const mib = 2 ** 20
const each = 8 * mib

/** Processes with 8 MiB each, or a file of 12 MiB in /dev/shm. */
const source = `
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **arguments) {
  int processes = atoi(arguments[1]), file = atoi(arguments[2]), filled[2];
  char one;
  if (pipe(filled) < 0) return 1;
  for (int i = 0; i < processes; i++)
    if (fork() == 0) {
      memset(malloc(${each}), 1 + i, ${each});
      if (write(filled[1], "x", 1) < 0) return 1;
      for (;;) pause();
    }
  for (int i = 0; i < processes; i++) if (read(filled[0], &one, 1) < 1) return 1;
  if (file) {
    static char piece[1 << 20];
    int shm = open("/dev/shm/large", O_WRONLY | O_CREAT, 0600);
    memset(piece, 1, sizeof piece);
    for (int i = 0; i < 12; i++) if (write(shm, piece, sizeof piece) < 0) return 1;
    close(shm);
  }
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}
`

describe.skipIf(cannotDump !== undefined)(`D10.tmpfs: the room of others ${cannotDump ?? ''}`, () => {
  let node: TestNode
  let tools = ''
  let dumps = 0
  const { signal } = new AbortController()
  beforeAll(async () => {
    node = await startTestNode()
    tools = join(node.directory, 'tools')
    await mkdir(tools)
    await run('sh', ['-c', 'printf %s "$SOURCE" | gcc -w -static -x c -o "$OUT" -'], {
      env: { SOURCE: source, OUT: join(tools, 'program') },
    })
  })
  afterAll(() => node?.dispose())

  const withApp = async (
    arguments_: readonly string[],
    body: (located: LocatedPod, app: TestContainer) => Promise<void>,
  ) => {
    const app = await startTestContainer(
      {
        ...{ sentinel: node.sentinel, clock: systemClock, random: systemRandom, fs: hostFs, signal },
        ...{ programs: node.programs.directory, directory: join(node.directory, 'cells') },
      },
      {
        ...{ role: 'primary', command: ['/opt/program', ...arguments_] },
        options: ['--volume', `${tools}:/opt`],
      },
    )
    try {
      await expect.poll(() => app.output()).toContain('ready')
      await body(await node.driver.locate(app.pod, signal), app)
    } finally {
      await app.stop()
    }
  }
  const dump = async (
    located: LocatedPod,
    roomBytes: number,
    until: AbortSignal = signal,
    before?: DumpOptions['before'],
  ) => {
    dumps += 1
    const directory = join(node.directory, 'generations', String(dumps))
    await mkdir(directory, { recursive: true })
    const done = node.driver.dump(located, directory, {
      deadlineMs: 60_000,
      roomBytes,
      signal: until,
      before,
    })
    return { directory, done }
  }

  it('a dump that is ended in its middle writes no more, however many files it has, and its processes go on', async () => {
    const processes = 64
    await withApp([String(processes), '0'], async located => {
      // On a busy machine a dump may be over before this process looks.
      await eventually(async () => {
        const stop = new AbortController()
        const { directory, done } = await dump(located, 2 * processes * each, stop.signal)
        const ended = done.then(
          () => 'saved',
          (error: unknown) => error,
        )
        const written = async () => (await bytesInDraft(directory)).written
        while ((await written()) < each) await systemClock.sleep(1)
        const full = new CheckpointError('StoreFull', 'enough')
        stop.abort(full)
        expect(await ended).toBe(full)
        // A full dump would have written more than all of their memory.
        expect(await written()).toBeLessThan(processes * each)
      })
      const again = await dump(located, 2 * processes * each)
      expect((await again.done).containers).toHaveLength(1)
      expect((await bytesInDraft(again.directory)).written).toBeGreaterThan(processes * each)
    })
  })

  it('what has many processes gets no more room than what has one', async () => {
    await withApp(['24', '0'], async located => {
      const full = await dump(located, 10 * each)
      await expect(full.done).rejects.toMatchObject({ code: 'StoreFull' })
      const most = 10 * each + 2 * mib
      expect((await bytesInDraft(full.directory)).written).toBeLessThan(most)
      // Room that is filled before the dump counts once: the size of the previous dump is enough.
      const first = await dump(located, 2 * 24 * each)
      await first.done
      const { written } = await bytesInDraft(first.directory)
      const names = await readdir(join(first.directory, 'containers/app/criu'))
      const files = await Promise.all(
        names.map(async name => {
          const path = `containers/app/criu/${name}`
          return { path, size: (await stat(join(first.directory, path))).size, sha256: '' }
        }),
      )
      await (await dump(located, written, signal, { files })).done
      const less = await dump(located, written - 3 * each, signal, { files })
      await expect(less.done).rejects.toMatchObject({ code: 'StoreFull' })
    })
  })

  it('an archive gets no larger than there is room', async () => {
    await withApp(['0', '1'], async located => {
      for (const roomBytes of [6 * mib, 6 * mib + 1]) {
        const { directory, done } = await dump(located, roomBytes)
        await expect(done).rejects.toMatchObject({ code: 'StoreFull' })
        expect((await bytesInDraft(directory)).archived).toBeLessThanOrEqual(roomBytes)
      }
      const { directory, done } = await dump(located, 24 * mib)
      await done
      expect((await bytesInDraft(directory)).archived).toBeGreaterThan(12 * mib)
    })
  })
})
