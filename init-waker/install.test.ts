import { execFile, execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { buildWaker } from './build.ts'
import { startGate, wakeAs } from './testing/gate.ts'
import { exchange } from './testing/peer.ts'
import { start } from './testing/process.ts'

const isRoot = process.getuid?.() === 0

describe('install', () => {
  let waker: string
  let directory: string
  beforeAll(async () => {
    waker = await buildWaker()
  })
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'install-'))
  })
  afterEach(() => {
    chmodSync(directory, 0o700)
    rmSync(directory, { recursive: true })
  })

  const expectInstalled = () => {
    expect(readdirSync(directory)).toEqual(['waker'])
    expect(readFileSync(join(directory, 'waker')).equals(readFileSync(waker))).toBe(true)
    expect(statSync(join(directory, 'waker')).mode & 0o7777).toBe(0o555)
  }

  test.each(['0000', '0077', '0777'])('a whole copy of itself, mode 0555 under umask %s', umask => {
    execFileSync('sh', ['-c', `umask ${umask}; exec ${waker} install ${directory}`])
    expectInstalled()
    expect(execFileSync(join(directory, 'waker'), ['version'], { encoding: 'utf8' })).toMatch(
      /^waker \d+\.\d+\.\d+\n$/,
    )
  })

  test('what is there is replaced, also while it runs', async () => {
    writeFileSync(join(directory, 'waker'), 'something older')
    execFileSync(waker, ['install', directory])
    expectInstalled()
    await using gate = await startGate(join(directory, 'waker'))
    const before = statSync(join(directory, 'waker')).ino
    execFileSync(waker, ['install', directory])
    expect(statSync(join(directory, 'waker')).ino).not.toBe(before)
    expect(await exchange(gate.port, wakeAs('primary'))).toContain('woken')
    expectInstalled()
  })

  test('no reader ever sees a part of it', async () => {
    execFileSync(waker, ['install', directory])
    const whole = readFileSync(waker)
    const installs = Array.from({ length: 40 }, () => promisify(execFile)(waker, ['install', directory]))
    let running = true
    const all = Promise.all(installs).finally(() => {
      running = false
    })
    let reads = 0
    while (running) {
      expect(readFileSync(join(directory, 'waker')).equals(whole)).toBe(true)
      reads++
      await new Promise(resolve => setImmediate(resolve))
    }
    await all
    expect(reads).toBeGreaterThan(1)
    expectInstalled()
  })

  test('directories are made for any user, and what is there keeps its mode', async () => {
    const [own, other] = [join(directory, 'a'), join(directory, 'b')]
    mkdirSync(own, { mode: 0o750 })
    execFileSync('sh', ['-c', `umask 0077; exec ${waker} install ${own} ${other}`])
    expect([own, other].map(path => statSync(path).mode & 0o7777)).toEqual([0o750, 0o777])
    await using gate = await startGate(waker, ['--install', own, '--install', join(directory, 'c')])
    expect(await exchange(gate.port, wakeAs('primary'))).toContain('woken')
    for (const name of ['a', 'b', 'c']) expect(readdirSync(join(directory, name))).toEqual(['waker'])
  })

  test('wait --install copies before it listens', async () => {
    await using gate = await startGate(waker, ['--install', directory])
    expectInstalled()
    expect(await exchange(gate.port, wakeAs('primary'))).toContain('woken')
  })

  test('a gate that cannot install does not open', async () => {
    await using gate = await start(waker, [
      ...[
        'wait',
        '--port',
        '0',
        '--token-sha256',
        '0'.repeat(64),
        '--install',
        join(directory, 'none/deeper'),
      ],
    ])
    expect(await gate.exit).toBe(1)
    expect(JSON.parse(gate.stderr())).toMatchObject({ msg: 'cannot install' })
  })

  test.skipIf(!isRoot)(
    `a disk that is full leaves nothing behind${isRoot ? '' : ' (needs root to mount)'}`,
    () => {
      const script = `mount -t tmpfs -o size=32k none ${directory} && { ${waker} install ${directory}; echo $?; ls -A ${directory}; }`
      const { stdout, stderr } = spawnSync('unshare', ['--mount', 'sh', '-c', script], { encoding: 'utf8' })
      expect(JSON.parse(stderr)).toMatchObject({ msg: 'cannot install', error: 'No space left on device' })
      expect(stdout).toBe('1\n')
    },
  )

  test.each([
    ['a directory whose parent is not there', '/nonexistent/deeper', 1],
    ['a file', '/etc/passwd', 1],
    ['an option', '--help', 2],
  ])('%s', (_, target, code) => {
    expect(spawnSync(waker, ['install', target]).status).toBe(code)
  })

  test('usage errors', () => {
    for (const args of [
      ['install'],
      ['install', directory, '--more'],
      ['version', 'more'],
      ['nonsense'],
      [],
    ]) {
      const { status, stderr } = spawnSync(waker, args, { encoding: 'utf8' })
      expect([status, stderr.split('\n')[0]], args.join(' ')).toEqual([
        2,
        'usage: waker wait --port PORT --token-sha256 HEX [--bind ADDRESS] [--install DIR]... [--socket PATH]',
      ])
    }
  })

  test('help is no error', () => {
    for (const name of ['help', '--help']) {
      const { status, stdout } = spawnSync(waker, [name], { encoding: 'utf8' })
      expect([status, stdout.split(' ')[0]]).toEqual([0, 'usage:'])
    }
  })
})
