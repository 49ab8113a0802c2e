import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cacheRoot } from '../build/cache.ts'
import { run } from '../build/run.ts'
import { ensureImages, imageNames, packImage, projectVersion } from './build.ts'
import { operatorFrom } from './recipes/operator.ts'
import { unpackImage } from './unpack.ts'

// The tests run the images in a chroot with its own namespaces: the minimum that a container adds.
const root = process.getuid?.() === 0

let scratch = ''
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-images-'))
})
afterAll(() => rm(scratch, { recursive: true, force: true }))

/** Runs a shell script as PID 1 of new namespaces with $ROOT as the image's file system and a loopback device. */
async function inside(rootfs: string, script: string): Promise<string> {
  const prepared = `
    set -e
    mkdir -p $ROOT/proc $ROOT/dev
    mount -t proc proc $ROOT/proc
    mount --rbind /dev $ROOT/dev
    chroot $ROOT /usr/bin/busybox ip link set lo up 2>/dev/null || true
    ${script}`
  return run('unshare', ['--mount', '--pid', '--net', '--fork', '--kill-child', 'sh', '-c', prepared], {
    env: { ROOT: rootfs },
  })
}

describe.skipIf(!root)('the images run (needs root: chroot and namespaces)', () => {
  test('nginx serves its page, in the foreground, and its labels do not pretend', async () => {
    const { nginx } = await ensureImages(['nginx'])
    const rootfs = join(scratch, 'nginx')
    const { ref, config } = await unpackImage(nginx.path, rootfs)
    expect(ref).toBe('docker.io/library/nginx:1.14.2')
    expect(config.Labels?.['org.opencontainers.image.description']).toContain('NOT the nginx 1.14.2')
    const page = await inside(
      rootfs,
      `chroot $ROOT /usr/sbin/nginx -g 'daemon off;' >$ROOT/log 2>&1 &
       for attempt in $(seq 300); do
         chroot $ROOT /usr/bin/wget -qO- http://127.0.0.1/ && exit 0
         sleep 0.1
       done
       cat $ROOT/log; exit 1`,
    )
    expect(page).toContain('Welcome to nginx!')
  }, 600_000)

  test('redis keeps what it is told, as its own user, and writes nothing to disk', async () => {
    const { redis } = await ensureImages(['redis'])
    const rootfs = join(scratch, 'redis')
    const { config } = await unpackImage(redis.path, rootfs)
    expect(config.User).toBe('999:999')
    const args = [...(config.Entrypoint ?? []), ...(config.Cmd ?? [])].map(word => `'${word}'`).join(' ')
    const answers = await inside(
      rootfs,
      `chroot --userspec=999:999 $ROOT ${args} >/dev/null &
       cli() { chroot --userspec=999:999 $ROOT /usr/bin/redis-cli "$@"; }
       for attempt in $(seq 300); do cli ping 2>/dev/null && break; sleep 0.1; done
       cli set a 1; cli incr a; cli shutdown 2>/dev/null; wait`,
    )
    expect(answers.trim().split('\n')).toEqual(['PONG', 'OK', '2'])
    expect(await readdir(join(rootfs, 'data'))).toEqual([])
  }, 600_000)

  test('an operator starts as user 65532 on a file system that it cannot write', async () => {
    const entry = join(scratch, 'main.ts')
    await writeFile(
      entry,
      `import { readFileSync, writeFileSync } from 'node:fs'
       import process from 'node:process'
       let writable = true
       try { writeFileSync('/probe', '') } catch { writable = false }
       const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
       console.log(JSON.stringify({ version, writable, uid: process.getuid?.(), args: process.argv.slice(2) }))`,
    )
    const source = await operatorFrom(entry, { version: '9.9.9' })
    const packed = await packImage(join(scratch, 'operator.tar'), source)
    const rootfs = join(scratch, 'operator')
    const { config } = await unpackImage(packed.path, rootfs)
    expect(config).toMatchObject({
      User: '65532:65532',
      Entrypoint: ['/usr/bin/node', '/app/understudy.mjs'],
    })
    const args = [...(config.Entrypoint ?? []), ...(config.Cmd ?? [])].join(' ')
    const answer = await inside(rootfs, `chroot --userspec=65532:65532 $ROOT ${args}`)
    expect(JSON.parse(answer)).toEqual({ version: '9.9.9', writable: false, uid: 65532, args: ['operator'] })
  }, 600_000)

  test('the operator in the image is this one', async () => {
    const { operator } = await ensureImages(['operator'])
    const rootfs = join(scratch, 'real-operator')
    const { ref } = await unpackImage(operator.path, rootfs)
    const version = (
      await inside(rootfs, 'chroot --userspec=65532:65532 $ROOT /usr/bin/node /app/understudy.mjs version')
    ).trim()
    expect(version).toBe(await projectVersion())
    expect(ref).toBe(`understudy.invalid/operator:${version}`)
  }, 600_000)

  test('the agent and every program that it puts on its node run from the image alone', async () => {
    const { agent } = await ensureImages(['agent'])
    const rootfs = join(scratch, 'agent')
    const { config } = await unpackImage(agent.path, rootfs)
    expect(config).toMatchObject({ User: '0:0', Cmd: ['agent'] })
    const tools = '/opt/understudy'
    expect((await readdir(join(rootfs, tools))).sort()).toEqual([
      'criu',
      'inspect',
      'keep-listening',
      'nsrun',
      'pages',
      'rootfs',
      'sentinel',
      'sever',
      'test-container',
      'tracker',
      'waker',
    ])
    const bundled = (bundle: string, program: string): string =>
      `${tools}/${bundle}/ld.so --library-path ${tools}/${bundle}/lib ${tools}/${bundle}/${program}`
    const lines = await inside(
      rootfs,
      `unset NODE_EXTRA_CA_CERTS
       for command in '/usr/bin/node /app/understudy.mjs version' '${bundled('criu', 'criu')} --version' \\
         '${bundled('criu', 'tar')} --version' '${tools}/nsrun x keep y' \\
         '${tools}/rootfs' '${tools}/sentinel version' '${tools}/waker version'; do
         chroot $ROOT $command 2>&1 | head -n 1
       done`,
    )
    expect(lines.trim().split('\n')).toEqual([
      await projectVersion(),
      expect.stringMatching(/^Version: 4\./),
      expect.stringMatching(/^tar \(GNU tar\)/),
      expect.stringMatching(/^usage: nsrun /),
      expect.stringMatching(/^usage: rootfs /),
      expect.stringContaining(await projectVersion()),
      expect.stringContaining(await projectVersion()),
    ])
  }, 600_000)

  test('pause ends on SIGTERM as PID 1, and reaps what is orphaned on it', async () => {
    const { pause } = await ensureImages(['pause'])
    const rootfs = join(scratch, 'pause')
    await unpackImage(pause.path, rootfs)
    const child = spawn(
      'unshare',
      [
        ...['--pid', '--fork', '--mount-proc', '--kill-child', 'sh', '-c'],
        // A dead child that is not reaped still answers `kill -0`, so this ends only when PID 1 has reaped it.
        `(orphan=$(sleep 0.01 >/dev/null & echo $!)
          while kill -0 $orphan 2>/dev/null; do sleep 0.01; done
          kill -TERM 1) & exec "$0"`,
        join(rootfs, 'pause'),
      ],
      { stdio: 'ignore' },
    )
    expect(await once(child, 'exit')).toEqual([0, null])
  }, 300_000)
})

test('images are cached: asking again builds nothing and gives the same archive', async () => {
  const first = await ensureImages(['pause', 'counter'])
  const steps: string[] = []
  const second = await ensureImages(['counter', 'pause'], { progress: message => steps.push(message) })
  expect(steps).toEqual([])
  expect(second).toEqual(first)
  expect((await stat(first.pause.path)).size).toBe(first.pause.size)
}, 300_000)

test('our own images come out the same when everything but the Debian packages is made anew', async () => {
  const names = imageNames.filter(name => name !== 'nginx' && name !== 'redis')
  const known = await ensureImages(names)
  const cacheDir = join(scratch, 'empty-cache')
  await mkdir(cacheDir)
  // Downloads are inputs. Everything compiled, bundled, compressed and packed from them must not vary.
  await symlink(join(cacheRoot(), 'debian'), join(cacheDir, 'debian'))
  const again = await ensureImages(names, { cacheDir })
  for (const name of names) {
    expect(again[name].path).not.toBe(known[name].path)
    expect(again[name].digest, name).toBe(known[name].digest)
    expect(await fileDigest(again[name].path), name).toBe(await fileDigest(known[name].path))
  }
}, 600_000)

test('the waker image holds one file of at most 100 KB', async () => {
  const { waker } = await ensureImages(['waker'])
  const rootfs = join(scratch, 'waker')
  await unpackImage(waker.path, rootfs)
  expect(await readdir(rootfs)).toEqual(['waker'])
  expect((await stat(join(rootfs, 'waker'))).size).toBeLessThanOrEqual(100_000)
}, 300_000)

async function fileDigest(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex')
}
