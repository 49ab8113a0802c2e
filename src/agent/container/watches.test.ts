import { watch } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { start } from '../../../init-waker/testing/process.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { hostProcFs } from './process.ts'
import { parseWatches, watchedPaths } from './watches.ts'

test('watches of a real process get their names back', async () => {
  // Near a root of the filesystem, as the search ends after so many files.
  const directory = await mkdtemp(join(process.getuid?.() === 0 ? '/' : tmpdir(), '.watched-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  await mkdir(join(directory, 'inner'))
  const watchers = [directory, join(directory, 'inner')].map(path => watch(path))
  onTestFinished(() => {
    for (const watcher of watchers) watcher.close()
  })
  const found = await watchedPaths(hostProcFs, process.pid)
  expect(found).toEqual(expect.arrayContaining([directory, join(directory, 'inner')]))
})

test('numbers of the kernel', () => {
  const fdinfo = [
    'pos:\t0\nflags:\t02000000\nmnt_id:\t16\nino:\t66',
    'inotify wd:2 ino:9e7e sdev:800013 mask:800afce ignored_mask:0 fhandle-bytes:8 fhandle-type:1 f_handle:7e9e',
    'inotify wd:1 ino:192627 sdev:2e mask:800afce ignored_mask:0 fhandle-bytes:8 fhandle-type:1 f_handle:2726',
    '',
  ].join('\n')
  expect(parseWatches(fdinfo)).toEqual([
    { device: '8:19', inode: 0x9e7en },
    { device: '0:46', inode: 0x192627n },
  ])
})

test.skipIf(process.getuid?.() !== 0)(
  'D10.hung-mount: a filesystem that does not answer is not looked at (needs root: mounts)',
  async () => {
    const directory = await mkdtemp(join(tmpdir(), 'hung-'))
    onTestFinished(() => rm(directory, { recursive: true }))
    for (const name of ['hung', 'watched']) await mkdir(join(directory, name))
    // No program answers the kernel's requests at descriptor 3, like a hung FUSE program or server of a tenant.
    const mount = 'mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 hung "$1/hung"'
    const own = 'mount -t tmpfs watched "$1/watched" && mkdir "$1/watched/deep"'
    const watching = 'const { watch } = require("node:fs"); watch(process.argv[1]); console.log("ready")'
    const script = `exec 3<>/dev/fuse && ${mount} && ${own} && exec "$2" -e '${watching}' "$1/watched/deep"`
    await using app = await start('unshare', [
      ...['--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', directory, process.execPath],
    ])
    await eventually(() => expect(app.stdout(), app.stderr()).toBe('ready\n'))
    expect(await readFile(`/proc/${app.pid}/mountinfo`, 'utf8')).toContain(`${directory}/hung rw`)
    expect(await watchedPaths(hostProcFs, app.pid)).toEqual([`${directory}/watched/deep`])
  },
)
