import { spawnSync } from 'node:child_process'
import { beforeAll, describe, expect, test } from 'vitest'
import { cannotUnshare, childrenOf, start } from '../init-waker/testing/process.ts'
import { eventually } from '../test/support/eventually.ts'
import { buildProgram } from './build.ts'

/** A pod's network with a server and its clients, which report how each of their connections ends. */
const script = (host: string) => `
  const { connect, createServer } = require('node:net')
  const server = createServer(socket => {
    const { remoteAddress } = socket
    socket.on('error', ({ code }) => console.log('server', remoteAddress.replace('::ffff:', ''), code))
  })
  // Each ends by itself, and the next one comes. On a busy machine it can last for as long as one that does not.
  const brief = () => {
    const began = performance.now()
    const socket = connect({ host: '127.0.0.1', port: 8080, localAddress: '127.0.0.4' })
    socket.on('error', ({ code }) => console.log('brief', code))
    setTimeout(() => {
      if (performance.now() - began > 50) console.log('slow')
      socket.destroy()
      brief()
    }, 5)
  }
  server.listen(8080, '${host}', () => {
    brief()
    for (const localAddress of ['127.0.0.2', '127.0.0.3'])
      connect({ host: '127.0.0.1', port: 8080, localAddress })
        .on('connect', () => console.log('up', localAddress))
        .on('error', ({ code }) => console.log('client', localAddress, code))
  })`

describe.skipIf(cannotUnshare !== undefined)(`sever ${cannotUnshare ?? ''}`, () => {
  let program = ''
  beforeAll(async () => {
    program = await buildProgram('sever')
  })
  const sever = (...args: readonly string[]) => {
    const { status, stdout } = spawnSync(program, args, { encoding: 'utf8' })
    return { status, stdout }
  }

  test.each([
    ['IPv4', '0.0.0.0'],
    ['IPv6 that speaks IPv4', '::'],
  ])(
    'both sides of a connection with one address see its end, and others go on: a server of %s',
    async (_, host) => {
      const inside = `ip link set lo up; exec ${process.execPath} -e "$0"`
      await using pod = await start('unshare', [
        '--net',
        '--fork',
        '--kill-child',
        'sh',
        '-c',
        inside,
        script(host),
      ])
      const all = () => pod.stdout().trim().split('\n').sort()
      const lines = () => all().filter(line => line !== 'slow')
      const count = (word: string) => all().filter(line => line.startsWith(word)).length
      await eventually(() => expect(lines()).toEqual(['up 127.0.0.2', 'up 127.0.0.3']))
      const [pid] = childrenOf(pod.pid)
      expect(sever(String(pid), '127.0.0.9')).toEqual({ status: 0, stdout: 'ended 0\n' })
      expect(sever(String(pid), '127.0.0.2')).toMatchObject({ status: 0 })
      await eventually(() =>
        expect(lines().filter(line => !line.startsWith('up'))).toEqual([
          'client 127.0.0.2 ECONNRESET',
          'server 127.0.0.2 ECONNABORTED',
        ]),
      )
      expect(sever(String(pid), '127.0.0.2')).toEqual({ status: 0, stdout: 'ended 0\n' })
      for (let left = 5; ; left -= 1) {
        expect(left).toBeGreaterThan(0)
        const slow = count('slow')
        const { status, stdout } = sever(String(pid), '127.0.0.4')
        expect(status).toBe(0)
        if (stdout === 'ended 0\n') break
        await eventually(() => expect(count('slow')).toBeGreaterThan(slow))
      }
      expect(count('brief')).toBeLessThanOrEqual(count('slow'))
    },
  )

  test('a connection of IPv6', async () => {
    const ipv6 = `
      const { connect, createServer } = require('node:net')
      const tell = (who, socket) => socket.on('error', ({ code }) => console.log(who, code))
      createServer(socket => tell('server', socket)).listen(8080, '::', () =>
        tell('client', connect({ host: '::1', port: 8080, localAddress: 'fd00::2' })).on('connect', () => console.log('up')))`
    const inside = `ip link set lo up; ip addr add fd00::2/128 dev lo nodad; exec ${process.execPath} -e "$0"`
    await using pod = await start('unshare', ['--net', '--fork', '--kill-child', 'sh', '-c', inside, ipv6])
    await eventually(() => expect(pod.stdout()).toBe('up\n'))
    const [pid] = childrenOf(pod.pid)
    expect(sever(String(pid), 'fd00::3')).toEqual({ status: 0, stdout: 'ended 0\n' })
    expect(sever(String(pid), 'fd00::2')).toMatchObject({ status: 0 })
    await eventually(() =>
      expect(pod.stdout().trim().split('\n').sort()).toEqual([
        'client ECONNRESET',
        'server ECONNABORTED',
        'up',
      ]),
    )
  })

  test('what is gone has no connections', () => {
    expect(sever('4194305', '127.0.0.2')).toEqual({ status: 0, stdout: 'ended 0\n' })
  })

  test("the node's own network is never touched", () => {
    expect(sever(String(process.pid), '127.0.0.2').status).toBe(1)
  })

  test.each([[[]], [['1']], [['x', '127.0.0.1']], [['1', 'localhost']]])('usage: %j', args => {
    expect(sever(...args).status).toBe(2)
  })
})
