import { chmodSync, existsSync, statSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { start } from '../../init-waker/testing/process.ts'
import { eventually } from '../../test/support/eventually.ts'
import { buildProgram } from '../build.ts'
import { buildApp, buildSanitized } from './testing/build.ts'
import { processOf, requestLine, secretOf, startSentinel } from './testing/sentinel.ts'

const why = process.getuid?.() === 0 ? undefined : '(needs root: it serves nobody else)'

const malformed = [
  ['an empty line', ''],
  ['spaces only', '  '],
  ['no id', 'hello'],
  ['an id with a letter', '1a hello'],
  ['an id with a leading zero', '01 hello'],
  ['a negative id', '-1 hello'],
  ['an id of 19 digits', '1234567890123456789 hello'],
  ['a space before the id', ' 1 hello'],
  ['a NUL', '1 hello\0'],
] as const

const malformedWithId = [
  ['no verb', '7'],
  ['an empty verb', '7 '],
  ['two spaces before the verb', '7  hello'],
  ['a verb in capitals', '7 HELLO'],
  ['a verb that is too long', `7 ${'a'.repeat(33)}`],
  ['a space at the end', '7 hello '],
  ['a word without an equals sign', '7 watch name'],
  ['no key', '7 watch =x'],
  ['a key with a capital', '7 watch Name=x'],
  ['a key with a dash', '7 watch na-me=x'],
  ['a key that is too long', `7 watch ${'k'.repeat(33)}=x`],
  ['two spaces between', '7 watch name=x  pid=1 start=1'],
  ['a percent sign alone', '7 watch name=%'],
  ['half an encoded byte', '7 watch name=%4'],
  ['an encoded byte with a wrong digit', '7 watch name=%4g'],
  ['an encoded NUL', '7 watch name=a%00b'],
  ['a carriage return', '7 hello\r'],
  ['a tab', '7 watch name=a\tb'],
  ['a byte that is not ASCII', '7 watch name=ä'],
  ['more fields than there is room for', `7 spawn${' arg=x'.repeat(1025)}`],
] as const

const refusals = [
  ['unknown-verb', '7 helo'],
  ['unknown-verb', '7 watch-'],
  ['unknown-key', '7 hello x=y'],
  ['unknown-key', '7 watch name=x pid=1 start=1 more=1'],
  ['missing-name', '7 watch pid=1 start=1'],
  ['missing-pid', '7 watch name=x start=1'],
  ['missing-start', '7 watch name=x pid=1'],
  ['repeated-name', '7 watch name=x name=x pid=1 start=1'],
  ['bad-name', '7 watch name= pid=1 start=1'],
  ['bad-name', `7 watch name=${'n'.repeat(257)} pid=1 start=1`],
  ['bad-pid', '7 watch name=x pid=0 start=1'],
  ['bad-pid', '7 watch name=x pid=-1 start=1'],
  ['bad-pid', '7 watch name=x pid=4194305 start=1'],
  ['bad-pid', '7 watch name=x pid=1x start=1'],
  ['bad-pid', '7 watch name=x pid= start=1'],
  ['bad-start', '7 watch name=x pid=1 start=9223372036854775808'],
  ['bad-start', '7 watch name=x pid=1 start=01'],
  ['unknown-name', '7 unwatch name=x'],
  ['unknown-name', '7 continue name=x'],
  ['unknown-name', '7 bury name=x'],
  ['unknown-name', '7 exhume name=x'],
  ['unknown-name', '7 grave name=x netns=1 start=1 heir=10.0.0.1'],
  ['unknown-name', '7 grave name=x heir=10.0.0.1 lasts=0'],
  ['missing-cgroup', '7 stop name=x deadline=1'],
  ['missing-deadline', '7 stop name=x cgroup=a'],
  ['bad-deadline', '7 stop name=x deadline=0 cgroup=a'],
  ['bad-deadline', '7 stop name=x deadline=86400001 cgroup=a'],
  ['bad-cgroup', '7 stop name=x deadline=1 cgroup='],
  ['bad-cgroup', '7 stop name=x deadline=1 cgroup=/a'],
  ['bad-cgroup', '7 stop name=x deadline=1 cgroup=a/../..'],
  ['bad-cgroup', '7 stop name=x deadline=1 cgroup=a//b'],
  ['bad-exclude', '7 stop name=x deadline=1 cgroup=a exclude=0'],
  ['missing-arg', '7 spawn target=1 start=1 ns=keep cgroup=stay deadline=1'],
  ['missing-ns', '7 spawn target=1 start=1 cgroup=stay deadline=1 arg=x'],
  ['bad-target', '7 spawn target=x start=1 ns=keep cgroup=stay deadline=1 arg=x'],
  ['bad-ns', '7 spawn target=1 start=1 ns=own cgroup=stay deadline=1 arg=x'],
  ['bad-cgroup', '7 spawn target=1 start=1 ns=keep cgroup=leave deadline=1 arg=x'],
  ['no-nsrun', '7 spawn target=1 start=1 ns=keep cgroup=stay deadline=1 arg=x'],
  ['unknown-key', '7 spawn target=1 start=1 ns=keep cgroup=stay deadline=1 arg=x fd=a:r'],
  ['unknown-key', '7 spawn target=1 start=1 ns=keep cgroup=stay deadline=1 arg=x fdx=a:r'],
  ['unknown-spawn', '7 kill-spawn spawn=1'],
  ['own-tree', '7 tree-kill pid=SELF start=1'],
  ['own-tree', '7 tree-continue pid=SELF start=1'],
] as const

describe.skipIf(why !== undefined).each([
  ['release build', () => buildProgram('sentinel')],
  ['sanitized build', () => buildSanitized('sentinel')],
])(`requests, %s ${why ?? ''}`, (_, build) => {
  let program: string
  let app: string
  beforeAll(async () => {
    program = await build()
    app = await buildApp()
  })

  test('hello tells who it is', async () => {
    await using sentinel = await startSentinel(program)
    const client = await sentinel.connect()
    const before = BigInt(Date.now()) * 1_000_000n
    const { word, values } = await client.ask('hello')
    expect([word, values['pid'], values['version']]).toEqual([
      'ok',
      String(sentinel.pid),
      expect.stringMatching(/^\d+\.\d+\.\d+/),
    ])
    expect(BigInt(values['started_unix_ns'] ?? 0)).toBeLessThan(before + 1_000_000n)
  })

  test.each([
    ...malformed.map(([what, line]) => [what, line, '-', 'malformed'] as const),
    ...malformedWithId.map(([what, line]) => [what, line, '7', 'malformed'] as const),
    ['a line of 65537 bytes', `7 hello x=${'y'.repeat(65527)}`, '-', 'too-long'] as const,
    ['a line of 70 kB', `7 hello x=${'y'.repeat(70_000)}`, '-', 'too-long'] as const,
  ])('%s is refused, and nothing is read after it', async (_, line, id, reason) => {
    await using sentinel = await startSentinel(program)
    await using watched = await start(app, ['pause'])
    const client = await sentinel.connect()
    client.write(`${line}\n${requestLine('8', 'watch', { name: 'w', ...processOf(watched.pid) })}`)
    await client.closed
    expect(client.lines).toEqual([{ id, word: 'refused', values: { reason } }])
    const other = await sentinel.connect()
    expect((await other.ask('unwatch', { name: 'w' })).values['reason']).toBe('unknown-name')
    expect((await other.ask('hello')).word).toBe('ok')
  })

  test.each([
    ['no secret', () => ''],
    ['another one', (secret: string) => secret.replace(/./, digit => (digit === '0' ? '1' : '0'))],
    ['the beginning of it', (secret: string) => `${secret.slice(0, 63)}\n`],
    ['more than it', (secret: string) => `${secret.trim()}0\n`],
    ['it in a second line', (secret: string) => `\n${secret}`],
    ['no end of a line', () => 'x'.repeat(65)],
  ])('%s: not one word is answered', async (_, first) => {
    await using sentinel = await startSentinel(program)
    const client = await sentinel.connect(first(secretOf(sentinel.socket)))
    client.write('1 hello\n')
    await client.closed
    expect(client.lines).toEqual([])
    await eventually(() => expect(sentinel.stderr()).toContain('refused a client without the secret'))
    expect((await (await sentinel.connect()).ask('hello')).word).toBe('ok')
  })

  test('the secret is for root alone, and another one with each start', async () => {
    const secrets = []
    for (let i = 0; i < 2; i++) {
      await using sentinel = await startSentinel(program)
      expect(statSync(`${sentinel.socket}.secret`).mode & 0o777).toBe(0o600)
      secrets.push(secretOf(sentinel.socket))
      expect(secrets[i]).toMatch(/^[0-9a-f]{64}\n$/)
    }
    expect(secrets[0]).not.toBe(secrets[1])
  })

  test('an order to hold that is led here starts nothing', async () => {
    await using sentinel = await startSentinel(program, { args: ['--nsrun', await buildProgram('nsrun')] })
    const proof = join(sentinel.directory, 'proof')
    const start = Number(processOf(sentinel.pid).start)
    // Words of a probe, as an agent sent them: each newline begins a request.
    const words = Array.from({ length: 41 }, (_, at) =>
      requestLine(String(at), 'spawn', {
        ...{ target: sentinel.pid, start: start - 20 + at, ns: 'host', cgroup: 'stay', deadline: 10_000 },
        ...{ detach: 1, arg: ['/bin/sh', '-c', `: > ${proof}`] },
      }),
    ).join('\n')
    const payload = `understudy/1 run ${words.length + 1}\n${words}\0`
    expect(payload.length).toBeGreaterThan(4_000)
    const led = await sentinel.connect(payload)
    await led.closed
    expect(led.lines).toEqual([])
    const known = await sentinel.connect(`${secretOf(sentinel.socket)}${payload}`)
    await known.closed
    expect(known.lines).toEqual([{ id: '-', word: 'refused', values: { reason: 'malformed' } }])
    expect(existsSync(proof)).toBe(false)
  })

  test('every wrong request is refused with what is wrong', async () => {
    await using sentinel = await startSentinel(program)
    const client = await sentinel.connect()
    for (const [reason, line] of refusals) {
      client.write(`${line.replace('SELF', String(sentinel.pid))}\n`)
      expect(await client.line(one => one.id === '7'), line).toEqual({
        id: '7',
        word: 'refused',
        values: { reason },
      })
    }
  })

  test('a line may have 64 KiB and not one byte more', async () => {
    await using sentinel = await startSentinel(program)
    const client = await sentinel.connect()
    const padded = (length: number) => {
      const head = '7 hello x='
      return `${head}${'y'.repeat(length - head.length)}`
    }
    client.write(`${padded(65536)}\n`)
    expect((await client.line(one => one.id === '7')).values['reason']).toBe('unknown-key')
    expect(client.lines).toEqual([])
  })

  test('lines may come in pieces and several at once', async () => {
    await using sentinel = await startSentinel(program)
    const client = await sentinel.connect()
    for (const byte of '11 hello\n') {
      client.write(byte)
      await new Promise(resolve => setImmediate(resolve))
    }
    expect((await client.line(one => one.id === '11')).word).toBe('ok')
    client.write('12 hello\n13 nope\n14 hello\n15 hel')
    for (const id of ['12', '13', '14']) await client.line(one => one.id === id)
    client.write('lo\n')
    expect((await client.line(one => one.id === '15')).word).toBe('ok')
  })

  test('values come back as they were given', async () => {
    await using sentinel = await startSentinel(program)
    await using watched = await start(app, ['pause'])
    const client = await sentinel.connect()
    const name = 'a b%c\nd=e äß \u{1F3AD}"\\'
    await client.ask('watch', { name, ...processOf(watched.pid) })
    const listed = client.line(line => line.word === 'watch')
    await client.ask('watches')
    expect((await listed).values['name']).toBe(name)
  })

  test('who sends half a line, or nothing, or hangs up in the middle is no trouble to others', async () => {
    await using sentinel = await startSentinel(program)
    const idle = await sentinel.connect()
    const half = await sentinel.connect()
    half.write('1 hel')
    for (let i = 0; i < 50; i++) {
      const hasty = await sentinel.connect()
      hasty.write(requestLine('1', 'watches', {}))
      hasty.write('2 hel')
      await hasty.close()
    }
    expect((await idle.ask('hello')).word).toBe('ok')
  })

  test('who does not read what is sent is dropped, and others are served', async () => {
    await using sentinel = await startSentinel(program)
    const other = await sentinel.connect()
    const deaf = createConnection({ path: sentinel.socket })
    const closed = new Promise(resolve => deaf.on('close', resolve))
    deaf.on('error', () => {})
    deaf.pause()
    deaf.write(secretOf(sentinel.socket))
    const requests = Buffer.from('1 hello\n'.repeat(20_000))
    for (let i = 0; i < 3; i++) deaf.write(requests)
    await eventually(() => expect(sentinel.stderr()).toContain('a client does not read'))
    expect((await other.ask('hello')).word).toBe('ok')
    deaf.resume()
    await closed
  })

  test('there is room for 16 clients, and again when one has gone', async () => {
    await using sentinel = await startSentinel(program)
    const clients = []
    for (let i = 0; i < 16; i++) clients.push(await sentinel.connect())
    for (const client of clients) expect((await client.ask('hello')).word).toBe('ok')
    const refused = await sentinel.connect()
    await refused.closed
    await clients[3]?.close()
    await eventually(async () => {
      const again = await sentinel.connect()
      expect((await again.ask('hello')).word).toBe('ok')
    })
  })

  test('nobody but root is served', async () => {
    await using sentinel = await startSentinel(program)
    // Opens the socket's mode, so that only the kernel's peer credentials protect it.
    const script = `process.setgid(1); process.setuid(1)
      require('node:net').connect(${JSON.stringify(sentinel.socket)})
        .on('error', error => console.log(error.code)).on('connect', function () { this.write('1 hello\\n') })
        .on('data', data => console.log('answer')).on('close', () => console.log('closed'))`
    expect(statSync(sentinel.socket).mode & 0o777).toBe(0o600)
    chmodSync(sentinel.directory, 0o755)
    await using closedDoor = await start(process.execPath, ['-e', script])
    await closedDoor.exit
    expect(closedDoor.stdout()).toBe('EACCES\nclosed\n')
    chmodSync(sentinel.socket, 0o666)
    await using stranger = await start(process.execPath, ['-e', script])
    await stranger.exit
    expect(stranger.stdout()).not.toContain('answer')
    expect(sentinel.stderr()).toContain('refused a peer that is not root')
  })
})
