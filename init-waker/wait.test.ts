// Long because every message runs against one real gate, as built for release and for tests.
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../test/support/eventually.ts'
import { buildWaker } from './build.ts'
import { buildSanitized } from './testing/build.ts'
import { digest, type Gate, otherToken, startGate, token, wakeAs } from './testing/gate.ts'
import { connect, exchange, type Peer } from './testing/peer.ts'
import { fillPipe } from './testing/pipe.ts'
import { start } from './testing/process.ts'

/** The request of the kubelet's startup probe. */
const probe =
  'GET /opened HTTP/1.1\r\nHost: 10.0.0.1:20000\r\nUser-Agent: kube-probe/1.36\r\nAccept: */*\r\nConnection: close\r\n\r\n'
const opened = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'

const replyOf = (word: string) => new RegExp(`^understudy/1 ${word} \\d{19}\\n$`)

describe.each([
  ['release build', () => buildWaker()],
  ['sanitized build', () => buildSanitized('waker')],
])('wake protocol, %s', (_, build) => {
  let waker: string
  beforeAll(async () => {
    waker = await build()
  })

  /** Checks that the gate is alive and closed, and then that it still opens. */
  async function stillOpens(gate: Gate): Promise<void> {
    expect(await exchange(gate.port, wakeAs('primary', otherToken))).toMatch(replyOf('denied'))
    expect(await exchange(gate.port, wakeAs('primary'))).toMatch(replyOf('woken'))
    expect(await gate.exit).toBe(0)
  }

  test.each(['primary', 'hotbackup'])('the token wakes as %s, once, and the gate exits 0', async kind => {
    await using gate = await startGate(waker)
    const before = BigInt(Date.now()) * 1_000_000n
    const reply = await exchange(gate.port, wakeAs(kind))
    const after = BigInt(Date.now() + 1) * 1_000_000n
    expect(reply).toMatch(replyOf('woken'))
    const at = BigInt(reply.trim().split(' ')[2] ?? '')
    expect(at >= before && at <= after).toBe(true)
    expect(await gate.exit).toBe(0)
    expect(gate.log().at(-1)).toMatchObject({ level: 'info', msg: 'woken', kind, at: String(at), refused: 0 })
    await expect(exchange(gate.port, wakeAs(kind))).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  test('D7.wake-once: whatever is not the request is answered and leaves the gate shut', async () => {
    await using gate = await startGate(waker)
    const request = wakeAs('primary')
    const table: readonly (readonly [string, string | Uint8Array, string])[] = [
      ['another token', wakeAs('primary', otherToken), 'denied'],
      ['the digest instead of the token', wakeAs('primary', digest), 'denied'],
      ['the token, last digit changed', wakeAs('primary', `${token.slice(0, 63)}e`), 'denied'],
      ['an empty line', '\n', 'malformed'],
      ['upper-case token', wakeAs('primary', token.toUpperCase()), 'malformed'],
      ['token of 63 digits', wakeAs('primary', token.slice(1)), 'malformed'],
      ['token of 65 digits', wakeAs('primary', `${token}0`), 'malformed'],
      ['token not hexadecimal', wakeAs('primary', `g${token.slice(1)}`), 'malformed'],
      ['unknown kind', wakeAs('coldbackup'), 'malformed'],
      ['kind in upper case', wakeAs('PRIMARY'), 'malformed'],
      ['beginning of a kind', wakeAs('prim'), 'malformed'],
      ['kind with something behind', wakeAs('primary2'), 'malformed'],
      ['no kind', `understudy/1 wake ${token}\n`, 'malformed'],
      ['two spaces', `understudy/1  wake ${token} primary\n`, 'malformed'],
      ['space at the end', `understudy/1 wake ${token} primary \n`, 'malformed'],
      ['carriage return', `understudy/1 wake ${token} primary\r\n`, 'malformed'],
      ['another version', `understudy/2 wake ${token} primary\n`, 'malformed'],
      ['another verb', `understudy/1 kill ${token} primary\n`, 'malformed'],
      ['a NUL inside', `understudy/1 wake ${token} prim\0ry\n`, 'malformed'],
      ['a NUL in front', `\0${request}`, 'malformed'],
      ['bytes that are not text', Uint8Array.from([0xff, 0xfe, 0x00, 0x80, 0x0a]), 'malformed'],
      ['two requests at once', request + request, 'malformed'],
      ['one byte behind the request', `${request}x`, 'malformed'],
      ['127 bytes and a newline', `${'a'.repeat(127)}\n`, 'malformed'],
      ['128 bytes without a newline', 'a'.repeat(128), 'malformed'],
      ['the request behind 128 bytes', `${'a'.repeat(128)}\n${request}`, 'malformed'],
      ['an HTTP request', 'GET / HTTP/1.1\r\nHost: gate\r\n\r\n', 'malformed'],
      ['a question of no meaning to a gate that ends', probe, 'malformed'],
      ['ten thousand bytes', 'a'.repeat(10_000), 'malformed'],
    ]
    for (const [name, bytes, word] of table) {
      expect(await exchange(gate.port, bytes), name).toMatch(replyOf(word))
    }
    await stillOpens(gate)
    expect(gate.log().at(-1)).toMatchObject({ msg: 'woken', refused: table.length + 1 })
  })

  test('D7.second-door: its own node opens it by the same message, through a socket of files', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'gate-'))
    const path = join(directory, 'gate.sock')
    await using gate = await startGate(waker, ['--socket', path])
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(await exchange({ path }, wakeAs('primary', otherToken))).toMatch(replyOf('denied'))
    expect(await exchange({ path }, 'nonsense\n')).toMatch(replyOf('malformed'))
    expect(await exchange(gate.port, wakeAs('hotbackup', otherToken))).toMatch(replyOf('denied'))
    // The gate counts refusals at either socket, and reports them only to the node.
    expect(await exchange({ path }, 'understudy/1 refused\n')).toBe('understudy/1 refused 3\n')
    expect(await exchange(gate.port, 'understudy/1 refused\n')).toMatch(replyOf('malformed'))
    const waiting = await Promise.all([connect({ path }), connect(gate.port)])
    const woken = await exchange({ path }, wakeAs('primary'))
    expect(woken).toMatch(replyOf('woken'))
    for (const peer of waiting) expect(await peer.reply).toBe(woken.replace('woken', 'already'))
    expect(await gate.exit).toBe(0)
    expect(gate.log().at(-1)).toMatchObject({ msg: 'woken', kind: 'primary', refused: 4 })
    expect(existsSync(path)).toBe(false)
    rmSync(directory, { recursive: true })
  })

  test('a door that cannot be made is a failure, not a gate with one door', async () => {
    await using gate = await start(waker, [
      'wait',
      '--port',
      '0',
      '--token-sha256',
      digest,
      '--socket',
      '/nowhere/gate.sock',
    ])
    expect(await gate.exit).toBe(1)
    expect(gate.stderr()).toContain('cannot listen for this node')
  })

  describe('a gate that stays', () => {
    test('answers a probe that has waited, and every later one, as soon as it is open', async () => {
      await using gate = await startGate(waker, ['--stay'])
      const waiting = await connect(gate.port)
      await waiting.send(probe)
      const late = connect(gate.port)
      expect(await exchange(gate.port, wakeAs('primary', otherToken))).toMatch(replyOf('denied'))
      expect(waiting.socket.bytesRead).toBe(0)
      const woken = await exchange(gate.port, wakeAs('hotbackup'))
      expect(woken).toMatch(replyOf('woken'))
      expect(await waiting.reply).toBe(opened)
      const { send, reply } = await late
      for (const byte of probe) await send(byte)
      expect(await reply).toBe(opened)
      const at = woken.trim().split(' ')[2]
      // The line about the refusal may come after it: it is written once a round, and one round may have both requests.
      await eventually(() =>
        expect(gate.log().find(({ msg }) => msg === 'woken')).toMatchObject({
          ...{ kind: 'hotbackup', at, refused: 1 },
        }),
      )
      // Every later request gets the same reply, whatever came before.
      expect(await exchange(gate.port, wakeAs('primary'))).toBe(woken.replace('woken', 'already'))
      expect(await exchange(gate.port, wakeAs('primary', otherToken))).toMatch(replyOf('denied'))
      expect(await exchange(gate.port, probe)).toBe(opened)
      process.kill(gate.pid, 'SIGTERM')
      expect(await gate.exit).toBe(143)
    })

    test('its node can open it, and is told so', async () => {
      const directory = mkdtempSync(join(tmpdir(), 'gate-'))
      const path = join(directory, 'gate.sock')
      await using gate = await startGate(waker, ['--stay', '--socket', path])
      const waiting = await connect(gate.port)
      await waiting.send(probe)
      const woken = await exchange({ path }, wakeAs('primary'))
      expect(woken).toMatch(replyOf('woken'))
      expect(await waiting.reply).toBe(opened)
      expect(await exchange({ path }, wakeAs('primary'))).toBe(woken.replace('woken', 'already'))
      rmSync(directory, { recursive: true })
    })

    test('a probe that has gone is forgotten, one that is longer than a message is none the less a probe', async () => {
      await using gate = await startGate(waker, ['--stay'])
      const gone = await connect(gate.port)
      await gone.send(probe)
      gone.socket.resetAndDestroy()
      const long = await connect(gate.port)
      await long.send(probe.replace('\r\n\r\n', `\r\nX: ${'x'.repeat(4000)}\r\n\r\n`))
      expect(await exchange(gate.port, wakeAs('primary'))).toMatch(replyOf('woken'))
      expect(await long.reply).toBe(opened)
    })

    test('of 400 probes the last are held, and none keeps the message out', async () => {
      await using gate = await startGate(waker, ['--stay'])
      const early: Peer[] = []
      for (let i = 0; i < 400; i++) {
        const peer = await connect(gate.port)
        await peer.send(probe)
        early.push(peer)
      }
      // A reply to a later request shows that the gate has handled the earlier ones.
      expect(await exchange(gate.port, wakeAs('primary', otherToken))).toMatch(replyOf('denied'))
      const last = await connect(gate.port)
      await last.send(probe)
      expect(await exchange(gate.port, wakeAs('primary'))).toMatch(replyOf('woken'))
      expect(await last.reply).toBe(opened)
      const replies = await Promise.all(early.map(peer => peer.reply))
      expect(new Set(replies)).toEqual(new Set(['', opened]))
      expect(replies.filter(reply => reply === opened).length).toBeLessThan(16)
    })

    test('a request that is no probe is malformed as ever', async () => {
      await using gate = await startGate(waker, ['--stay'])
      for (const request of [
        'GET / HTTP/1.1\r\n\r\n',
        'GET /openedx HTTP/1.1\r\n\r\n',
        'POST /opened HTTP/1.1\r\n\r\n',
      ])
        expect(await exchange(gate.port, request), request).toMatch(replyOf('malformed'))
      process.kill(gate.pid, 'SIGTERM')
      expect(await gate.exit).toBe(143)
    })
  })

  test('a request in single bytes is the same request', async () => {
    await using gate = await startGate(waker)
    const peer = await connect(gate.port)
    for (const byte of wakeAs('hotbackup')) await peer.send(byte)
    expect(await peer.reply).toMatch(replyOf('woken'))
    expect(await gate.exit).toBe(0)
  })

  test('half a request and then the end is malformed', async () => {
    await using gate = await startGate(waker)
    const peer = await connect(gate.port)
    peer.socket.end(wakeAs('primary').slice(0, -1))
    expect(await peer.reply).toMatch(replyOf('malformed'))
    await stillOpens(gate)
  })

  test('a request followed by the end of the connection counts', async () => {
    await using gate = await startGate(waker)
    const peer = await connect(gate.port)
    peer.socket.end(wakeAs('primary'))
    expect(await peer.reply).toMatch(replyOf('woken'))
    expect(await gate.exit).toBe(0)
  })

  test('connecting and closing without a word is no refusal', async () => {
    await using gate = await startGate(waker)
    const peer = await connect(gate.port)
    peer.socket.end()
    expect(await peer.reply).toBe('')
    expect(await exchange(gate.port, wakeAs('primary'))).toMatch(replyOf('woken'))
    await gate.exit
    expect(gate.log().at(-1)).toMatchObject({ msg: 'woken', refused: 0 })
  })

  test('a peer that resets the connection takes nothing along', async () => {
    await using gate = await startGate(waker)
    for (const bytes of ['', 'understudy/1 wa', wakeAs('primary', otherToken)]) {
      const peer = await connect(gate.port)
      await peer.send(bytes)
      peer.socket.resetAndDestroy()
      await peer.reply
    }
    await stillOpens(gate)
  })

  test('what comes behind a refused line is not answered with a reset', async () => {
    await using gate = await startGate(waker)
    const peer = await connect({ host: '127.0.0.1', port: gate.port, allowHalfOpen: true })
    let lost: Error | undefined
    peer.socket.on('error', error => {
      lost = error
    })
    await peer.send('a'.repeat(128))
    await new Promise(resolve => peer.socket.once('end', resolve))
    for (let i = 0; i < 10; i++) await peer.send('a'.repeat(100))
    peer.socket.end()
    expect(await peer.reply).toMatch(replyOf('malformed'))
    expect(lost).toBeUndefined()
  })

  test('a peer that never stops sending is cut off', async () => {
    await using gate = await startGate(waker)
    const peer = await connect(gate.port)
    peer.socket.write('a'.repeat(10_000_000))
    await peer.reply
    await stillOpens(gate)
  })

  test('who is connected when the gate opens is told when it did', async () => {
    await using gate = await startGate(waker)
    const silent = await Promise.all(Array.from({ length: 20 }, () => connect(gate.port)))
    await silent[3]?.send('understudy/1 wake 01')
    const woken = await exchange(gate.port, wakeAs('primary'))
    expect(woken).toMatch(replyOf('woken'))
    for (const peer of silent) expect(await peer.reply).toBe(woken.replace('woken', 'already'))
    expect(await gate.exit).toBe(0)
  })

  test('of 100 that know the token at the same time one wakes, the others are told so', async () => {
    await using gate = await startGate(waker)
    const peers = await Promise.all(Array.from({ length: 100 }, () => connect(gate.port)))
    await Promise.all(peers.map(peer => peer.send(wakeAs('primary'))))
    const replies = await Promise.all(peers.map(peer => peer.reply))
    const woken = replies.filter(reply => replyOf('woken').test(reply))
    expect(woken).toHaveLength(1)
    expect(replies.filter(reply => reply === woken[0]?.replace('woken', 'already'))).toHaveLength(99)
    expect(await gate.exit).toBe(0)
  })

  test('100 wrong tokens at the same time are all denied', async () => {
    await using gate = await startGate(waker)
    const peers = await Promise.all(Array.from({ length: 100 }, () => connect(gate.port)))
    await Promise.all(peers.map(peer => peer.send(wakeAs('primary', otherToken))))
    for (const peer of peers) expect(await peer.reply).toMatch(replyOf('denied'))
    await stillOpens(gate)
  })

  test('400 silent peers keep nobody out', async () => {
    await using gate = await startGate(waker)
    const silent = await Promise.all(Array.from({ length: 400 }, () => connect(gate.port)))
    for (const peer of silent) peer.socket.write('understudy/1 wake ')
    await stillOpens(gate)
    const replies = await Promise.all(silent.map(peer => peer.reply))
    for (const reply of replies) expect(reply).toMatch(replyOf('(malformed|already)'))
  })

  test('a peer that sends byte after byte has one deadline for all of them', async () => {
    await using gate = await startGate(waker)
    const silent = await connect(gate.port)
    const slow = await connect(gate.port)
    const drip = setInterval(() => slow.socket.write('u'), 200)
    expect(await slow.reply).toMatch(replyOf('malformed'))
    expect(await silent.reply).toMatch(replyOf('malformed'))
    clearInterval(drip)
    await stillOpens(gate)
  })

  test('refusals are counted and told of at most once a second', async () => {
    await using gate = await startGate(waker)
    for (let i = 0; i < 50; i++) {
      await exchange(gate.port, i % 5 === 0 ? 'nonsense\n' : wakeAs('primary', otherToken))
    }
    const lines = await eventually(() => {
      const told = gate.log().filter(({ msg }) => msg === 'refused')
      expect(told.at(-1)).toMatchObject({ total: 50, peer: '127.0.0.1' })
      return told
    })
    const sum = (name: string) => lines.reduce((total, line) => total + Number(line[name]), 0)
    expect([sum('denied'), sum('malformed')]).toEqual([40, 10])
    const times = lines.map(line => Number(line['time']))
    for (const [i, time] of times.entries()) {
      if (i > 0) expect(time - Number(times[i - 1])).toBeGreaterThanOrEqual(990)
    }
  })

  test('a log that nobody reads does not hold up the gate', async () => {
    const own = ownAddress(1)
    using pipe = fillPipe()
    await using gate = await start(
      waker,
      ['wait', '--bind', own.host, '--port', String(own.port), '--token-sha256', digest],
      {
        stderr: pipe.writeEnd,
      },
    )
    expect(await eventually(() => exchange(own, wakeAs('primary', otherToken)))).toMatch(replyOf('denied'))
    expect(await exchange(own, wakeAs('primary'))).toMatch(replyOf('woken'))
    expect(await gate.exit).toBe(0)
  })

  test('IPv4 and IPv6 peers reach the same gate', async ({ skip }) => {
    await using gate = await startGate(waker)
    const v6 = await connect({ host: '::1', port: gate.port }).catch((error: NodeJS.ErrnoException) => error)
    if (v6 instanceof Error) {
      skip(`no IPv6 on this machine: ${v6.message}`)
      return
    }
    await v6.send(wakeAs('primary', otherToken))
    expect(await v6.reply).toMatch(replyOf('denied'))
    await stillOpens(gate)
  })

  test('--bind listens on that address only', async () => {
    await using gate = await startGate(waker, ['--bind', '127.0.0.2'])
    // Read from the kernel: on another address another program may use the same port.
    expect(listeningAddresses(gate.pid)).toEqual(['0200007F'])
    expect(await exchange({ host: '127.0.0.2', port: gate.port }, wakeAs('primary'))).toMatch(
      replyOf('woken'),
    )
  })

  test('--quiet writes nothing', async () => {
    const own = ownAddress(2)
    await using gate = await start(waker, [
      ...['wait', '--quiet', '--bind', own.host, '--port', String(own.port), '--token-sha256', digest],
    ])
    expect(await eventually(() => exchange(own, wakeAs('primary', otherToken)))).toMatch(replyOf('denied'))
    expect(await exchange(own, wakeAs('primary'))).toMatch(replyOf('woken'))
    expect(await gate.exit).toBe(0)
    expect(gate.stderr() + gate.stdout()).toBe('')
  })

  test('a port that is taken ends it with the reason', async () => {
    await using gate = await startGate(waker)
    await using second = await start(waker, ['wait', '--port', String(gate.port), '--token-sha256', digest])
    expect(await second.exit).toBe(1)
    expect(JSON.parse(second.stderr())).toMatchObject({ level: 'error', msg: 'cannot listen' })
  })

  test.each([
    [[]],
    [['--port', '20000']],
    [['--token-sha256', digest]],
    [['--port', '65536', '--token-sha256', digest]],
    [['--port', '-1', '--token-sha256', digest]],
    [['--port', '020', '--token-sha256', digest]],
    [['--port', '', '--token-sha256', digest]],
    [['--port', '1', '--token-sha256', digest.toUpperCase()]],
    [['--port', '1', '--token-sha256', digest.slice(1)]],
    [['--port', '1', '--token-sha256', `${digest}0`]],
    [['--port', '1', '--token-sha256', digest, 'more']],
    [['--port', '1', '--token-sha256', digest, '--nonsense']],
  ])('usage error: wait %j', async args => {
    await using waiting = await start(waker, ['wait', ...args])
    expect(await waiting.exit).toBe(2)
    expect(waiting.stderr()).toContain('usage: waker wait')
  })

  test('an address that is none is told of', async () => {
    await using waiting = await start(waker, [
      ...['wait', '--port', '0', '--token-sha256', digest, '--bind', 'localhost'],
    ])
    expect(await waiting.exit).toBe(1)
    expect(waiting.stderr()).toContain('Invalid argument')
  })
})

/**
 * Returns a fixed port on an address of its own: the kernel may assign free ports to other programs at any
 * time.
 */
function ownAddress(last: number): { readonly host: string; readonly port: number } {
  return { host: `127.77.0.${last}`, port: 20077 }
}

/** Returns the IPv4 addresses, in the kernel's notation, on which a process listens. */
function listeningAddresses(pid: number): readonly string[] {
  const inodes = readdirSync(`/proc/${pid}/fd`).map(name => readlinkSync(`/proc/${pid}/fd/${name}`))
  return readFileSync(`/proc/${pid}/net/tcp`, 'utf8')
    .split('\n')
    .map(line => line.trim().split(/\s+/))
    .filter(fields => fields[3] === '0A' && inodes.includes(`socket:[${fields[9]}]`))
    .map(fields => String(fields[1]?.split(':')[0]))
}
