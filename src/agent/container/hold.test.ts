import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isAgentError } from '../../api/agent-errors.ts'
import { createFakeClock, systemClock } from '../../kube/clock.ts'
import { encodeOrder, orderHold, parseReply } from './hold.ts'

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'fulfilled',
    (error: unknown) => (isAgentError(error) ? error.code : String(error)),
  )

/** Makes a root with `hold.sock` in /run/app, where `answer` handles each request. */
async function rootWith(answer: (request: string, socket: Socket) => void) {
  const root = await mkdtemp(join(tmpdir(), 'hold-'))
  await mkdir(join(root, 'run/app'), { recursive: true })
  const server = createServer(socket => {
    socket.setEncoding('latin1')
    socket.on('error', () => undefined)
    socket.on('data', (request: string) => answer(request, socket))
  })
  await new Promise<void>(resolve => server.listen(join(root, 'run/app/hold.sock'), resolve))
  onTestFinished(async () => {
    server.close()
    await rm(root, { recursive: true, force: true })
  })
  return { root, directory: '/run/app', clock: systemClock }
}

describe('orders to hold', () => {
  test.each([
    [{ order: 'state' }, 'understudy/1 state\n'],
    [{ order: 'adopt', pid: 42 }, 'understudy/1 adopt 42\n'],
    [{ order: 'release' }, 'understudy/1 release\n'],
    [{ order: 'end', code: 3 }, 'understudy/1 end 3\n'],
    [{ order: 'run', command: ['/a b', ''] }, 'understudy/1 run 6\n/a b\0\0'],
    [{ order: 'wait', pid: 7 }, 'understudy/1 wait 7\n'],
    [{ order: 'kill', pid: 7 }, 'understudy/1 kill 7\n'],
    [{ order: 'start' }, 'understudy/1 start\n'],
    [{ order: 'start', entrypoint: ['/a b', 'ä'] }, 'understudy/1 start 8\n/a b\0ä\0'],
  ] as const)('%j', (order, bytes) => {
    expect(encodeOrder(order).toString()).toBe(bytes)
  })

  test('an order names the key of hold, and one that has none is sent as before', () => {
    const key = '0123456789abcdef0123456789abcdef'
    expect(encodeOrder({ order: 'adopt', pid: 42 }, key).toString()).toBe(`understudy/2 ${key} adopt 42\n`)
    expect(encodeOrder({ order: 'run', command: ['a'] }, key).toString()).toBe(
      `understudy/2 ${key} run 2\na\0`,
    )
    expect(encodeOrder({ order: 'end', code: 0 }).toString()).toBe('understudy/1 end 0\n')
  })

  test('a word with a NUL in it, which would be two, is sent to nobody', () => {
    expect(() => encodeOrder({ order: 'run', command: ['sh', '-c\0rm'] })).toThrow('a word contains a NUL')
  })

  test('no other character in a word has a meaning: the head is one line, and says how many bytes follow', () => {
    const control = fc.integer({ min: 1, max: 31 }).map(code => String.fromCharCode(code))
    const unit = fc.oneof(control, fc.constant('\x7f'), fc.string({ unit: 'binary', maxLength: 2 }))
    const word = fc.string({ unit }).map(text => text.replaceAll('\0', ''))
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 5 }), words => {
        const bytes = encodeOrder({ order: 'run', command: words })
        const head = bytes.indexOf('\n') + 1
        const payload = bytes.subarray(head)
        expect(bytes.toString('utf8', 0, head)).toBe(`understudy/1 run ${payload.length}\n`)
        expect(payload.equals(Buffer.from(words.map(it => `${it}\0`).join('')))).toBe(true)
      }),
    )
  })

  test('the key is that of the file beside the socket, and of no other place', async () => {
    const asked: string[] = []
    const options = await rootWith((request, socket) => {
      asked.push(request)
      socket.end('understudy/1 released 0 1\n')
    })
    const file = join(options.root, 'run/app/hold.key')
    const release = () => codeOf(orderHold(options, { order: 'release' }))
    const plain = 'understudy/1 release\n'
    const [own, secret] = ['a'.repeat(32), 'b'.repeat(32)]

    expect([await release(), asked.pop()]).toEqual(['fulfilled', plain])
    await writeFile(file, own)
    expect([await release(), asked.pop()]).toEqual(['fulfilled', `understudy/2 ${own} release\n`])
    for (const odd of ['', 'a'.repeat(31), 'a'.repeat(33), 'a b'.padEnd(32, 'a'), `\n${own}`.slice(0, 32)]) {
      await writeFile(file, odd)
      expect([await release(), asked.pop()], odd).toEqual(['fulfilled', plain])
    }
    await rm(file)
    await writeFile(join(options.root, 'secret'), secret)
    await symlink(join(options.root, 'secret'), file)
    expect([await release(), asked.pop()]).toEqual(['fulfilled', plain])
    await rm(file)
    execFileSync('mkfifo', [file])
    expect([await release(), asked.pop()]).toEqual(['fulfilled', plain])
    await orderHold(options, { order: 'state' })
    expect(asked).toEqual(['understudy/1 state\n'])
  })

  test('a hold that has just begun is asked once more, with its key', async () => {
    const asked: string[] = []
    const key = 'c'.repeat(32)
    const options = await rootWith((request, socket) => {
      asked.push(request)
      writeFileSync(join(options.root, 'run/app/hold.key'), key)
      socket.end(`understudy/1 ${request.includes(key) ? 'released' : 'denied'} 0 1\n`)
    })
    expect((await orderHold(options, { order: 'release' })).word).toBe('released')
    expect(asked).toEqual(['understudy/1 release\n', `understudy/2 ${key} release\n`])
  })

  test('the answer is told', async () => {
    const asked: string[] = []
    const options = await rootWith((request, socket) => {
      asked.push(request)
      socket.end('understudy/1 adopted 42 1900000000000000001\n')
    })
    expect(await orderHold(options, { order: 'adopt', pid: 42 })).toEqual({
      word: 'adopted',
      number: 42,
      unixNs: 1900000000000000001n,
    })
    expect(asked).toEqual(['understudy/1 adopt 42\n'])
  })

  test.each([
    ['understudy/1 denied 0 1\n', 'HoldRefused'],
    ['understudy/1 malformed 0 1\n', 'HoldRefused'],
    ['understudy/2 holding 0 1\n', 'HoldUnavailable'],
    ['understudy/1 holding 0', 'HoldUnavailable'],
    ['', 'HoldUnavailable'],
    ['x'.repeat(300), 'HoldUnavailable'],
  ])('%#: answer %j', async (answer, code) => {
    const options = await rootWith((_, socket) => socket.end(answer))
    expect(await codeOf(orderHold(options, { order: 'state' }))).toBe(code)
  })

  test('nobody is waited for without end', async () => {
    const clock = createFakeClock()
    const options = await rootWith(() => undefined)
    const outcome = codeOf(orderHold({ ...options, clock }, { order: 'state' }))
    await clock.untilSleepers(1)
    await clock.advance(5_000)
    expect(await outcome).toBe('HoldUnavailable')
  })

  test('an abort ends the wait with its reason', async () => {
    const abort = new AbortController()
    const options = await rootWith(() => abort.abort(new Error('enough')))
    await expect(orderHold({ ...options, signal: abort.signal }, { order: 'state' })).rejects.toThrow(
      'enough',
    )
  })

  test('nothing there, a file, and links that lead elsewhere', async () => {
    const options = await rootWith((_, socket) => socket.end('understudy/1 holding 0 1\n'))
    const { root } = options
    expect(await codeOf(orderHold({ ...options, directory: '/none' }, { order: 'state' }))).toBe(
      'HoldUnavailable',
    )
    await mkdir(join(root, 'file'))
    await writeFile(join(root, 'file/hold.sock'), '')
    expect(await codeOf(orderHold({ ...options, directory: '/file' }, { order: 'state' }))).toBe(
      'HoldUnavailable',
    )
    await symlink('run', join(root, 'link'))
    expect(await codeOf(orderHold({ ...options, directory: '/link/app' }, { order: 'state' }))).toBe(
      'HoldUnavailable',
    )
    await mkdir(join(root, 'last'))
    await symlink('../run/app/hold.sock', join(root, 'last/hold.sock'))
    expect(await codeOf(orderHold({ ...options, directory: '/last' }, { order: 'state' }))).toBe(
      'HoldUnavailable',
    )
  })

  test('a name that is exchanged all the time leads no order out of the container', async () => {
    const inside: string[] = []
    const outside: string[] = []
    const options = await rootWith((request, socket) => {
      inside.push(request)
      socket.end('understudy/1 holding 0 1\n')
    })
    const elsewhere = await rootWith((request, socket) => {
      outside.push(request)
      socket.destroy()
    })
    const directory = join(options.root, 'run/app')
    await rename(join(directory, 'hold.sock'), join(directory, 'true'))
    // hold.sock always exists: it is the socket, or a link to a socket outside the container.
    const exchange = `const { linkSync, renameSync, symlinkSync } = require('node:fs')
      process.chdir(${JSON.stringify(directory)})
      for (let at = 0; ; at += 1) {
        linkSync('true', 'next')
        renameSync('next', 'hold.sock')
        if (at === 0) console.log('begun')
        symlinkSync(${JSON.stringify(join(elsewhere.root, 'run/app/hold.sock'))}, 'next')
        renameSync('next', 'hold.sock')
      }`
    const attacker = spawn(process.execPath, ['-e', exchange], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(async () => {
      attacker.kill('SIGKILL')
      await once(attacker, 'exit')
    })
    await once(attacker.stdout, 'data')
    for (let tries = 0; (tries < 2_000 || inside.length === 0) && outside.length === 0; tries += 1) {
      const outcome = await codeOf(orderHold(options, { order: 'run', command: ['true'] }))
      expect(outcome).toMatch(/^(fulfilled|HoldUnavailable)$/)
    }
    expect(outside).toEqual([])
  }, 60_000)

  test('a path of any length is reached', async () => {
    const options = await rootWith((_, socket) => socket.end('understudy/1 holding 0 1\n'))
    const deep = join(options.root, 'a'.repeat(120))
    await mkdir(deep)
    await symlink(options.root, join(deep, 'root'))
    expect((await orderHold({ ...options, root: join(deep, 'root') }, { order: 'state' })).word).toBe(
      'holding',
    )
  })

  test('whatever comes is an answer or is not', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 80 }), text => {
        expect(parseReply(text) === undefined || text.startsWith('understudy/1 ')).toBe(true)
      }),
    )
  })
})
