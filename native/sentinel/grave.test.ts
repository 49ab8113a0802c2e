// Long because every case needs the same network of a pod, an heir and a client.
import { readdirSync, readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { start, stateOf } from '../../init-waker/testing/process.ts'
import { eventually } from '../../test/support/eventually.ts'
import { buildProgram } from '../build.ts'
import { buildApp, buildSanitized } from './testing/build.ts'
import { beginTransaction } from './testing/busy.ts'
import { askGrave, dig } from './testing/graves.ts'
import { cannotNetwork, createNetwork, type Place } from './testing/network.ts'
import { processOf, startSentinel } from './testing/sentinel.ts'

describe.skipIf(cannotNetwork !== undefined).each([
  ['release build', () => buildProgram('sentinel')],
  ['sanitized build', () => buildSanitized('sentinel')],
])(`a grave, %s ${cannotNetwork ?? ''}`, (_, build) => {
  let program: string
  let app: string
  beforeAll(async () => {
    program = await build()
    app = await buildApp()
  })

  const refused = 'error 111'
  const trials = 8

  test('D7.grave: a redirect that waits for a transaction of the pod holds up nothing, and is known once it is in effect', async () => {
    // On a busy machine a transaction can end before this process has asked all, and its trial says nothing then.
    for (let left = trials; ; left -= 1) {
      await using sentinel = await startSentinel(program)
      await using network = await createNetwork(app)
      const client = await sentinel.connect()
      const dead = await network.pod.serve('dead')
      await network.heir.serve('heir')
      expect((await dig(client, network, 'p', dead.pid)).word).toBe('ready')
      const busy = await beginTransaction(network.pod, sentinel.pid)
      process.kill(dead.pid, 'SIGKILL')
      const event = await client.line(line => line.word === 'died')
      // Until it is known where the connections go, the redirect neither ends nor gets another heir.
      const early = [
        await client.ask('exhume', { name: 'p' }),
        await client.ask('grave', { name: 'p', heir: network.client.address }),
      ]
      if (busy.stdout() !== 'begins\n' && left > 1) continue
      expect(busy.stdout()).toBe('begins\n')
      expect(event).toMatchObject({ values: { name: 'p', grave: 'failed' } })
      expect(early.map(({ word }) => word)).toEqual(['failed', 'failed'])
      await eventually(() => expect(busy.stdout()).toBe('begins\nended\n'))
      await eventually(() => expect(network.ask('tcp')).toBe('heir 10.0.0.2'))
      await eventually(async () => expect((await client.ask('exhume', { name: 'p' })).word).toBe('ok'))
      expect(network.ask('tcp')).toBe(refused)
      return
    }
  })

  test('D7.grave: before the death nothing is different, from it on every port is the heir’s', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const dead = await network.pod.serve('dead')
    await network.pod.serve('sidecar', 9090)
    for (const port of [8080, 9090, 20001]) await network.heir.serve('heir', port)
    expect((await dig(client, network, 'p', dead.pid)).word).toBe('ready')
    for (const protocol of ['tcp', 'udp'] as const) {
      expect(network.ask(protocol)).toBe('dead 10.0.0.1')
      expect(network.ask(protocol, 20001)).toBe(refused)
    }

    process.kill(dead.pid, 'SIGKILL')
    const event = await client.line(line => line.word === 'died')
    expect(event).toMatchObject({ id: '-', values: { name: 'p', grave: 'closed' } })
    // The heir sees the dead pod's address, so its answers return through the pod.
    for (const protocol of ['tcp', 'udp'] as const)
      for (const port of [8080, 9090, 20001]) expect(network.ask(protocol, port)).toBe('heir 10.0.0.2')
  })

  test('D7.grave: a container that starts again in the same pod is never heard', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const dead = await network.pod.serve('dead')
    await network.heir.serve('heir')
    await dig(client, network, 'p', dead.pid)
    process.kill(dead.pid, 'SIGKILL')
    await client.line(line => line.word === 'died')
    await dead.exit
    await network.pod.serve('impostor')
    for (let i = 0; i < 20; i++) {
      expect(network.ask('tcp')).toBe('heir 10.0.0.2')
      expect(network.ask('udp')).toBe('heir 10.0.0.2')
    }
    // The pod reaches itself, and its outgoing connections work as before.
    expect(network.pod.run(app, ['ask', 'tcp', '127.0.0.1', '8080'])).toBe('impostor 127.0.0.1\n')
    expect(network.pod.run(app, ['ask', 'tcp', network.heir.address, '8080'])).toBe('heir 10.0.0.2\n')
  })

  test('D7.grave: the other containers that are watched end with the dead one, and nothing else of the pod does', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const [dead, sibling, sidecar] = [
      await network.pod.serve('dead'),
      await network.pod.serve('sibling', 9090),
      await network.pod.serve('sidecar', 9091),
    ]
    await dig(client, network, 'p/a', dead.pid)
    await dig(client, network, 'p/b', sibling.pid)
    expect((await client.ask('watch', { name: 'p/c', ...processOf(sidecar.pid) })).word).toBe('watching')
    process.kill(dead.pid, 'SIGKILL')
    const names = [
      await client.line(({ word }) => word === 'died'),
      await client.line(({ word }) => word === 'died'),
    ]
    expect(names.map(({ values }) => values['name'])).toEqual(['p/a', 'p/b'])
    await sibling.exit
    expect(stateOf(sidecar.pid)).toBe('S')
  })

  describe('a grave that lasts for a time', () => {
    /** True if a grave of this length, closed after `from`, is closed still. The kernel may round its end. */
    const isClosed = (from: number, lasts: number) => performance.now() - from < lasts - 100

    /** Returns false if this process was too slow to see the grave before it opened. */
    async function opensByItself(lasts: number): Promise<boolean> {
      await using sentinel = await startSentinel(program)
      await using network = await createNetwork(app)
      const client = await sentinel.connect()
      const dead = await network.pod.serve('dead')
      await dig(client, network, 'p', dead.pid, { lasts })
      const died = performance.now()
      process.kill(dead.pid, 'SIGKILL')
      await client.line(line => line.word === 'died')
      await dead.exit
      await client.close()
      await network.pod.serve('impostor')
      const answer = network.ask('tcp')
      if (!isClosed(died, lasts)) return false
      expect(answer).toBe(refused)
      await eventually(() => expect(network.ask('tcp')).toBe('impostor 10.0.0.1'))
      // A server runs again, but the death remains a death.
      const next = await sentinel.connect()
      const buried = performance.now()
      expect((await next.ask('bury', { name: 'p' })).word).toBe('closed')
      const last = network.ask('tcp')
      if (!isClosed(buried, lasts)) return false
      expect(last).toBe(refused)
      return true
    }

    test('D7.grave: opens by itself where nobody says a word, and lets in what runs there', async () => {
      for (let lasts = 1_500; !(await opensByItself(lasts)); ) lasts *= 2
    })

    test('stays closed for as long as it is buried again, and for ever where it is said so', async () => {
      const lasts = 1_500
      await using sentinel = await startSentinel(program)
      await using network = await createNetwork(app)
      const client = await sentinel.connect()
      const dead = await network.pod.serve('dead')
      await dig(client, network, 'p', dead.pid, { lasts })
      let from = performance.now()
      process.kill(dead.pid, 'SIGKILL')
      await client.line(line => line.word === 'died')
      await dead.exit
      await network.pod.serve('impostor')
      for (let rounds = 0; rounds < 4; ) {
        await new Promise(resolve => setTimeout(resolve, lasts / 2))
        const answer = network.ask('tcp')
        const closed = isClosed(from, lasts)
        if (closed) expect(answer).toBe(refused)
        // Where this process was too late, the grave may have opened between.
        rounds = closed ? rounds + 1 : 0
        from = performance.now()
        await client.ask('bury', { name: 'p' })
      }
      await eventually(async () => {
        await client.ask('bury', { name: 'p' })
        expect((await client.ask('grave', { name: 'p', heir: network.heir.address })).word).toBe('closed')
      })
      await new Promise(resolve => setTimeout(resolve, lasts * 1.3))
      expect(network.ask('tcp')).toBe(refused)
    })
  })

  test('D7.grave: gets another heir when nothing of the pod runs any more', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const dead = await network.pod.serve('dead')
    await network.heir.serve('heir')
    expect((await client.ask('watch', { name: 'p', ...processOf(dead.pid) })).word).toBe('watching')
    const aim = (heir: string) => client.ask('grave', { name: 'p', heir })
    expect((await aim(network.heir.address)).values['reason']).toBe('no-grave')
    await dig(client, network, 'p', dead.pid)
    expect((await aim('127.0.0.1')).word).toBe('ready')
    process.kill(dead.pid, 'SIGKILL')
    await client.line(line => line.word === 'died')
    await dead.exit
    expect(network.ask('tcp')).not.toMatch(/heir/)
    expect((await aim(network.heir.address)).word).toBe('closed')
    expect(network.ask('tcp')).toBe('heir 10.0.0.2')
  })

  test('D7.grave: a client that connects again from the port of a connection that the death has reset reaches the heir', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    // It reads nothing, so its end resets the connection.
    const deaf = `require('node:net').createServer({ pauseOnConnect: true }).listen(8080, '0.0.0.0', () => console.log('ready'))`
    const dead = await network.pod.start([process.execPath, '-e', deaf])
    await eventually(() => expect(dead.stdout()).toBe('ready\n'))
    await network.heir.serve('heir')
    await dig(client, network, 'p', dead.pid)
    const to = JSON.stringify({ host: network.pod.address, port: 8080, localPort: 40_000 })
    const ask = `const s = require('node:net').connect(${to}); s.on('data', d => console.log(String(d).split(' ')[0])).on('error', e => console.log(e.code))`
    const early = await network.client.start([
      process.execPath,
      '-e',
      `${ask}; s.write('x', () => console.log('sent'))`,
    ])
    await eventually(() => expect(early.stdout()).toBe('sent\n'))
    process.kill(dead.pid, 'SIGKILL')
    await early.exit
    expect(early.stdout()).toBe('sent\nECONNRESET\n')
    await client.line(line => line.word === 'died')
    await network.pod.serve('impostor')
    expect(network.client.run(process.execPath, ['-e', ask])).toBe('heir\n')
  })

  test('a UDP conversation from before the death goes to the heir too', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const dead = await network.pod.serve('dead')
    await network.heir.serve('heir')
    await dig(client, network, 'p', dead.pid)
    const talk = await network.client.start([
      'sh',
      '-c',
      // Its questions come through a file, so that the test decides their time.
      `mkfifo ${sentinel.directory}/q && exec 3<>${sentinel.directory}/q && exec ${app} talk ${network.pod.address} 8080 <&3`,
    ])
    const question = () => network.client.run('sh', ['-c', `echo > ${sentinel.directory}/q`])
    await eventually(() => network.client.run('test', ['-p', `${sentinel.directory}/q`]))
    question()
    await eventually(() => expect(talk.stdout()).toBe('dead 10.0.0.1\n'))
    process.kill(dead.pid, 'SIGKILL')
    await client.line(line => line.word === 'died')
    await dead.exit
    await network.pod.serve('impostor')
    // The sentinel works sequentially: this reply shows that it has finished handling the death.
    await client.ask('hello')
    question()
    await eventually(() => expect(talk.stdout()).toBe('dead 10.0.0.1\nheir 10.0.0.2\n'))
  })

  test('connections of those who live go on', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const dead = await network.pod.serve('dead')
    // A connection into the pod and one out of it, both idle since before there was any connection tracking.
    const stays = async (place: Place, listener: Place, port: number) => {
      const directory = sentinel.directory
      const script = `
        const net = require('node:net'), fs = require('node:fs')
        if (process.argv[1] === 'listen') net.createServer(s => s.pipe(s)).listen(${port}, () => console.log('ready'))
        else {
          const s = net.connect(${port}, '${listener.address}')
          s.on('connect', () => console.log('ready'))
          s.on('data', data => console.log('echo ' + data))
          s.on('close', () => console.log('closed'))
          process.stdin.on('data', () => {})
          fs.watch('${directory}', (_, name) => name === 'speak' && s.write('x'))
        }`
      const server = await listener.start([process.execPath, '-e', script, 'listen'])
      await eventually(() => expect(server.stdout()).toBe('ready\n'))
      const speaker = await place.start([process.execPath, '-e', script, 'speak'])
      await eventually(() => expect(speaker.stdout()).toBe('ready\n'))
      return speaker
    }
    const inbound = await stays(network.client, network.pod, 9091)
    const outbound = await stays(network.pod, network.heir, 9092)
    await dig(client, network, 'p', dead.pid)
    process.kill(dead.pid, 'SIGKILL')
    expect((await client.line(line => line.word === 'died')).values).toMatchObject({ grave: 'closed' })
    network.client.run('touch', [`${sentinel.directory}/speak`])
    await eventually(() => expect(inbound.stdout()).toMatch(/^ready\necho x/))
    await eventually(() => expect(outbound.stdout()).toMatch(/^ready\necho x/))
  })

  test('bury resets the connections that clients keep with an app, also if the app is stopped', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    await network.heir.serve('heir')
    const server = `require('node:net').createServer(() => {}).listen(8080, () => console.log('ready'))`
    const stands = await network.pod.start([process.execPath, '-e', server])
    await eventually(() => expect(stands.stdout()).toBe('ready\n'))
    const outside = `require('node:net').connect({ host: '${network.pod.address}', port: 8080 })
      .on('connect', () => console.log('up'))
      .on('error', ({ code }) => console.log(code))`
    const accepted = await network.client.start([process.execPath, '-e', outside])
    await eventually(() => expect(accepted.stdout()).toBe('up\n'))
    process.kill(stands.pid, 'SIGSTOP')
    const waits = await network.client.start([process.execPath, '-e', outside])
    await eventually(() => expect(waits.stdout()).toBe('up\n'))
    await dig(client, network, 'p', stands.pid)
    expect(await client.ask('bury', { name: 'p' })).toMatchObject({ word: 'closed' })
    for (const one of [accepted, waits]) await eventually(() => expect(one.stdout()).toBe('up\nECONNRESET\n'))
    expect(network.ask('tcp')).toBe('heir 10.0.0.2')
    expect(stateOf(stands.pid)).toBe('T')
  })

  test('bury closes it while the pod lives, exhume opens it again', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const alive = await network.pod.serve('alive')
    await network.heir.serve('heir')
    await dig(client, network, 'p', alive.pid)
    for (let round = 0; round < 2; round++) {
      expect(await client.ask('bury', { name: 'p' })).toMatchObject({ word: 'closed' })
      expect(await client.ask('bury', { name: 'p' })).toMatchObject({ word: 'closed' })
      expect([network.ask('tcp'), network.ask('udp')]).toEqual(['heir 10.0.0.2', 'heir 10.0.0.2'])
      expect((await client.ask('exhume', { name: 'p' })).word).toBe('ok')
      expect([network.ask('tcp'), network.ask('udp')]).toEqual(['alive 10.0.0.1', 'alive 10.0.0.1'])
    }
    expect((await client.ask('bury', { name: 'x' })).values['reason']).toBe('unknown-name')
  })

  test('from exhume on, no connection of the pod is reset, however late the sentinel gets round to those from before', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const alive = await network.pod.serve('alive')
    await dig(client, network, 'p', alive.pid)
    for (let round = 0; round < 20; round++) {
      // Each orders one more look at all connections.
      for (let order = 0; order < 10; order++) await client.ask('bury', { name: 'p' })
      expect((await client.ask('exhume', { name: 'p' })).word).toBe('ok')
      for (let look = 0; look < 5; look++) expect(network.ask('tcp')).toBe('alive 10.0.0.1')
    }
  })

  test('connections that are to end do not wait for a processor', async ({ skip }) => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const alive = await network.pod.serve('alive')
    await dig(client, network, 'p', alive.pid)
    // Both follow it: that connections are reset, and, without priority, that they are forgotten.
    await client.ask('bury', { name: 'p' })
    const policies = () =>
      readdirSync(`/proc/${sentinel.pid}/task`).map(
        tid => readFileSync(`/proc/${sentinel.pid}/task/${tid}/stat`, 'utf8').split(') ')[1]?.split(' ')[38],
      )
    const [usual] = policies()
    if (usual !== '1') skip('this kernel gives no priority here')
    await eventually(() => expect(policies()).toEqual(policies().map(() => usual)))
  })

  test('a new heir replaces the one before', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const dead = await network.pod.serve('dead')
    await network.heir.serve('heir')
    await dig(client, network, 'p', dead.pid)
    const { pid, start: begun } = processOf(network.pod.sandbox.pid)
    const to = (heir: string) => askGrave(client, { name: 'p', netns: pid, start: begun, heir })
    const before = sentinel.descriptors()
    expect((await to('10.0.0.77')).word).toBe('ready')
    expect((await to(network.heir.address)).word).toBe('ready')
    // A transaction that took too long has its socket until it ends.
    await eventually(() => expect(sentinel.descriptors()).toBe(before))
    process.kill(dead.pid, 'SIGKILL')
    await client.line(line => line.word === 'died')
    expect(network.ask('tcp')).toBe('heir 10.0.0.2')
  })

  test('a grave for one who is dead already is closed at once', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const dead = await network.pod.serve('dead')
    await network.heir.serve('heir')
    await client.ask('watch', { name: 'p', ...processOf(dead.pid) })
    process.kill(dead.pid, 'SIGKILL')
    expect((await client.line(line => line.word === 'died')).values['grave']).toBe('none')
    const { pid, start: begun } = processOf(network.pod.sandbox.pid)
    const reply = await askGrave(client, { name: 'p', netns: pid, start: begun, heir: '10.0.0.3' })
    expect(reply.word).toBe('closed')
    expect(network.ask('tcp')).toBe('heir 10.0.0.2')
  })

  test('a grave for one container leaves that of another in the same pod closed, whoever the heir is', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const dead = await network.pod.serve('dead')
    const other = await network.pod.serve('other', 9090)
    await network.heir.serve('heir')
    const { pid, start: begun } = processOf(network.pod.sandbox.pid)
    const dig = (name: string, heir: string) => askGrave(client, { name, netns: pid, start: begun, heir })
    await client.ask('watch', { name: 'dead', ...processOf(dead.pid) })
    await client.ask('watch', { name: 'other', ...processOf(other.pid) })
    expect((await dig('dead', network.heir.address)).word).toBe('ready')
    expect((await dig('other', '10.0.0.77')).word).toBe('ready')
    process.kill(dead.pid, 'SIGKILL')
    // The other container ends with it, and changes nothing.
    for (const name of ['dead', 'other'])
      expect(await client.line(line => line.word === 'died')).toMatchObject({
        values: { name, grave: 'closed' },
      })
    await dead.exit
    await network.pod.serve('impostor')
    expect(network.ask('tcp')).toBe('heir 10.0.0.2')
    expect((await dig('other', network.heir.address)).word).toBe('closed')
    expect(network.ask('tcp')).toBe('heir 10.0.0.2')
    // The heir named last applies to the whole pod, also to the container that died first.
    await dig('dead', '10.0.0.77')
    expect(network.ask('tcp')).toMatch(/^error/)
    await client.ask('exhume', { name: 'dead' })
    expect(network.ask('tcp')).toBe('impostor 10.0.0.1')
    expect((await dig('other', network.heir.address)).word).toBe('closed')
    expect(network.ask('tcp')).toBe('heir 10.0.0.2')
  })

  test('it stays closed without the sentinel, and keeps nothing alive once it is forgotten', async () => {
    const sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    await client.ask('hello')
    const idle = sentinel.descriptors()
    const dead = await network.pod.serve('dead')
    await network.heir.serve('heir')
    await dig(client, network, 'p', dead.pid)
    process.kill(dead.pid, 'SIGKILL')
    await client.line(line => line.word === 'died')
    expect((await client.ask('unwatch', { name: 'p' })).word).toBe('ok')
    // The thread that forgets connections may still have its socket.
    await eventually(() => expect(sentinel.descriptors()).toBe(idle))
    expect(network.ask('tcp')).toBe('heir 10.0.0.2')
    await sentinel[Symbol.asyncDispose]()
    expect(network.ask('tcp')).toBe('heir 10.0.0.2')
    await network.pod.end()
    await eventually(() => expect(network.ports()).not.toContain('pod'))
  })

  test('the namespace of a pod that is deleted goes when its watch is forgotten', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const dead = await network.pod.serve('dead')
    await dig(client, network, 'p', dead.pid)
    await network.pod.end()
    await client.line(line => line.word === 'died')
    expect(network.ports()).toContain('pod')
    await client.ask('unwatch', { name: 'p' })
    await eventually(() => expect(network.ports()).not.toContain('pod'))
  })

  test('the network of the node itself is never touched', async () => {
    await using sentinel = await startSentinel(program)
    await using own = await start(app, ['pause'])
    const client = await sentinel.connect()
    await client.ask('watch', { name: 'p', ...processOf(own.pid) })
    const { pid, start: begun } = processOf(own.pid)
    const reply = await client.ask('grave', { name: 'p', netns: pid, start: begun, heir: '10.0.0.3' })
    expect(reply).toMatchObject({ word: 'failed', values: { reason: expect.stringContaining('not a pod') } })
  })

  test('a sandbox with that pid but another start time is gone', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const alive = await network.pod.serve('alive')
    await client.ask('watch', { name: 'p', ...processOf(alive.pid) })
    const { pid, start: begun } = processOf(network.pod.sandbox.pid)
    const asked = { name: 'p', netns: pid, start: Number(begun) + 1, heir: '10.0.0.3' }
    expect((await client.ask('grave', asked)).word).toBe('gone')
    expect((await client.ask('bury', { name: 'p' })).values['reason']).toBe('no-grave')
  })
})
