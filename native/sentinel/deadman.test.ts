import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { start, stateOf } from '../../init-waker/testing/process.ts'
import { eventually } from '../../test/support/eventually.ts'
import { buildProgram } from '../build.ts'
import { buildApp, buildSanitized } from './testing/build.ts'
import { beginTransaction } from './testing/busy.ts'
import { createCgroup } from './testing/cgroup.ts'
import { cannotNetwork, createNetwork, type Network } from './testing/network.ts'
import { type Client, processOf, type Sentinel, startSentinel, type Values } from './testing/sentinel.ts'
import { api, apiRun } from './testing/voters.ts'

/** Long enough for a sentinel that waits for a processor. */
const timeout = 5_000
/** How long a client waits for an answer, ms: where one is expected, and where a lost packet must show. */
const [answerMs, lostMs] = [10_000, 1_000]
/** For tests in which no voter is ever silent. */
const patient = { timeout: 60_000 }
/** So many ticks of 10 ms tell a sentinel that waits from one that does not. */
const enoughTicks = 20
const key = randomBytes(32).toString('hex')

describe.skipIf(cannotNetwork !== undefined).each([
  ['release build', () => buildProgram('sentinel')],
  ['sanitized build', () => buildSanitized('sentinel')],
])(`the switch of a primary, %s ${cannotNetwork ?? ''}`, (_, build) => {
  let program: string
  let app: string
  beforeAll(async () => {
    program = await build()
    app = await buildApp()
  })

  const join = async (sentinel: Sentinel) => {
    const client = await sentinel.connect()
    await client.ask('votes')
    const { values } = await client.ask('heartbeats', { port: 0 })
    return { sentinel, client, port: values['port'] ?? '', run: values['run'] ?? '' }
  }
  type Node = Awaited<ReturnType<typeof join>>
  const introduce = async (one: Node, name: string, { port, run }: Node) => {
    const reply = await one.client.ask('peer', { name, address: '127.0.0.1', port, run, key })
    expect(reply.word).toBe('ok')
  }
  const answer = (client: Client, run: string) =>
    client.ask('answered', { name: 'pod', epoch: 1, run, sent: String(process.hrtime.bigint()) })
  const answered = async (client: Client) => expect((await answer(client, apiRun)).word).toBe('ok')
  const primary = (client: Client, voter: string, network: Network, over: Values = {}) => {
    const { pid, start } = processOf(network.pod.sandbox.pid)
    const about = { name: 'pod', slot: 's', epoch: 1, version: 1, timeout, voter, netns: pid, start }
    return client.ask('primary', { ...about, ...over })
  }
  /** Has a primary acknowledged by an answer of the API server. Either of them may be too late. */
  const acknowledge = (client: Client, network: Network, over: Values = {}) =>
    eventually(async () => {
      const acknowledged = primary(client, api, network, over)
      await answer(client, apiRun)
      expect((await acknowledged).word).toBe('ok')
    })
  /** The switch cannot be removed while the kernel is at an earlier renewal. */
  const unprimary = (client: Client) =>
    eventually(async () => expect((await client.ask('unprimary', { name: 'pod' })).word).toBe('ok'))

  /** Asks the server in the pod over both families; `-` stands for no answer. */
  function ask(network: Network, patienceMs = answerMs): string {
    const script = `
      const { connect } = require('node:net')
      const ask = host => new Promise(resolve => {
        const socket = connect({ host, port: 8080 })
        const end = word => { socket.destroy(); resolve(word) }
        socket.setTimeout(${patienceMs}, () => end('-')).on('error', () => end('-')).on('data', bytes => end(bytes.toString()))
      })
      Promise.all(['${network.pod.address}', 'fd00::2'].map(ask)).then(words => console.log(words.join(' ')))`
    return network.client.run(process.execPath, ['-e', script]).trim()
  }
  /** Returns how many requests for a connection the client had to send again. */
  const repeats = (network: Network) =>
    Number(network.client.run('nstat', ['-asz', 'TcpExtTCPSynRetrans']).match(/TCPSynRetrans +(\d+)/)?.[1])
  /** Starts a server in the pod that answers every connection, over both families. */
  async function serve(network: Network): Promise<void> {
    const script = `
      const { createServer } = require('node:net')
      createServer(socket => { socket.on('error', () => {}); socket.write('word') }).listen(8080, '::', () => console.log('ready'))`
    const server = await network.pod.start([process.execPath, '-e', script])
    await eventually(() => expect(server.stdout()).toBe('ready\n'))
    await eventually(() => expect(ask(network)).toBe('word word'))
  }

  test('D8.switch: packets pass while the voters answer, and the kernel alone ends that', async () => {
    await using network = await createNetwork(app)
    await serve(network)
    await using one = await startSentinel(program)
    await using other = await startSentinel(program)
    const [a, b] = [await join(one), await join(other)]
    await introduce(a, 'b', b)
    await introduce(b, 'a', a)
    await b.client.ask('vote', { slot: 's', epoch: 1, node: 'a', run: a.run, timeout: 60_000 })
    await eventually(async () => expect((await primary(a.client, `b/${b.run}`, network)).word).toBe('ok'))
    await a.client.line(({ word }) => word === 'serves')
    await eventually(() => expect(ask(network)).toBe('word word'))
    // The voter is away, and the sentinel cannot do anything any more.
    process.kill(other.pid, 'SIGSTOP')
    process.kill(one.pid, 'SIGSTOP')
    await eventually(() => expect(ask(network, lostMs)).toBe('- -'))
    process.kill(one.pid, 'SIGCONT')
    await a.client.line(({ word }) => word === 'stops')
    expect(ask(network, lostMs)).toBe('- -')
    process.kill(other.pid, 'SIGCONT')
    await a.client.line(({ word }) => word === 'serves')
    await eventually(() => expect(ask(network)).toBe('word word'))
    // Neither another version of the voters nor a second request for the switch leaves a gap.
    expect((await primary(a.client, `b/${b.run}`, network, { version: 2 })).word).toBe('ok')
    const before = repeats(network)
    expect(ask(network)).toBe('word word')
    expect(repeats(network)).toBe(before)
    await unprimary(a.client)
    process.kill(other.pid, 'SIGSTOP')
    await new Promise(resolve => setTimeout(resolve, 2 * timeout))
    expect(ask(network)).toBe('word word')
    process.kill(other.pid, 'SIGCONT')
  })

  test('D8.switch: a primary that nobody has answered yet serves, and other voters count once they have answered', async () => {
    await using network = await createNetwork(app)
    await serve(network)
    await using one = await startSentinel(program)
    const a = await join(one)
    const acknowledged = primary(a.client, api, network, patient)
    await a.client.line(({ word }) => word === 'alone')
    // Until then it has no voters, and no operator counts on them.
    expect(ask(network)).toBe('word word')
    await answered(a.client)
    expect((await acknowledged).word).toBe('ok')
    expect(ask(network)).toBe('word word')
    // Other voters have not answered yet: the earlier ones count until then.
    const changed = primary(a.client, api, network, { ...patient, version: 2, next: `API/${'b'.repeat(16)}` })
    expect(ask(network)).toBe('word word')
    await answer(a.client, 'b'.repeat(16))
    await answered(a.client)
    expect((await changed).word).toBe('ok')
    expect(ask(network)).toBe('word word')
  })

  test('D8.switch: packets pass until the answers end, also if the last one came long before the switch was to end', async () => {
    await using network = await createNetwork(app)
    await serve(network)
    await using one = await startSentinel(program)
    const a = await join(one)
    await acknowledge(a.client, network, { timeout: 12_000 })
    const stops = () => a.client.lines.filter(({ word }) => word === 'stops').length
    const pass = (share: number) => new Promise(resolve => setTimeout(resolve, share * 12_000))
    let [before, found] = [0, '']
    do {
      await answered(a.client)
      // Too soon for a renewal because of this answer.
      await pass(0.18)
      await answered(a.client)
      before = stops()
      // The first answer counts no more, and the second one still does.
      await pass(0.52)
      found = ask(network, lostMs)
      // On a busy machine both may be over by now. Its lines come before the reply.
      await a.client.ask('votes')
    } while (stops() > before)
    expect(found).toBe('word word')
    await unprimary(a.client)
  })

  test('D8.switch: after a restart of the sentinel, packets pass as before', async () => {
    await using network = await createNetwork(app)
    await serve(network)
    await using one = await startSentinel(program)
    const { directory } = one
    const a = await join(one)
    await acknowledge(a.client, network, patient)
    process.kill(one.pid, 'SIGKILL')
    await one.exit
    await using next = await startSentinel(program, { directory })
    const again = await join(next)
    expect(ask(network)).toBe('word word')
    await unprimary(again.client)
  })

  test('D8.shut: what a former primary has answered while no packet passed does not leave when its guard ends', async () => {
    await using network = await createNetwork(app)
    await serve(network)
    await using one = await startSentinel(program)
    const a = await join(one)
    await acknowledge(a.client, network)
    // The connection stands before; the server answers while its packets are dropped.
    const script = `
      const socket = require('node:net').connect(8081, process.argv[1])
      socket.on('error', () => {}).on('data', data => console.log(String(data)))
      setInterval(() => socket.write('more'), 50)`
    const echo = `
      require('node:net').createServer(socket => {
        socket.on('error', () => {}).on('data', data => socket.write(data))
      }).listen(8081, '::', () => console.log('ready'))`
    const server = await network.pod.start([process.execPath, '-e', echo])
    await eventually(() => expect(server.stdout()).toBe('ready\n'))
    const client = await network.client.start([process.execPath, '-e', script, network.pod.address])
    await eventually(() => expect(client.stdout()).toContain('more'))
    await a.client.line(({ word }) => word === 'stops')
    // Words that arrived before may still be in the pipes between the processes.
    let before: string
    do {
      before = client.stdout()
      await new Promise(resolve => setTimeout(resolve, 1_000))
    } while (client.stdout() !== before)
    expect((await a.client.ask('unprimary', { name: 'pod', shut: 'yes' })).word).toBe('ok')
    await new Promise(resolve => setTimeout(resolve, 4 * timeout))
    expect(client.stdout()).toBe(before)
    expect(ask(network, lostMs)).toBe('- -')
  })

  test('D8.freeze: without its sandbox, a pod stays frozen after a restart of the sentinel', async () => {
    await using network = await createNetwork(app)
    using cgroup = createCgroup()
    await using one = await startSentinel(program)
    const { directory } = one
    await using held = await start(app, ['pause'])
    const isStopped = () => eventually(() => expect(stateOf(held.pid)).toBe('T'))
    cgroup.add(held.pid)
    const a = await join(one)
    await acknowledge(a.client, network, { cgroup: cgroup.path })
    await a.client.line(({ word }) => word === 'stops')
    await isStopped()
    process.kill(one.pid, 'SIGKILL')
    await one.exit
    await network.pod.end()
    await using next = await startSentinel(program, { directory })
    const again = await join(next)
    await again.client.line(({ word }) => word === 'stops')
    await new Promise(resolve => setTimeout(resolve, 300))
    await isStopped()
    await eventually(async () => {
      await answered(again.client)
      expect(stateOf(held.pid)).not.toBe('T')
    })
  })

  test('D8.switch: the node itself gets none', async () => {
    await using network = await createNetwork(app)
    await using one = await startSentinel(program)
    const a = await join(one)
    const { pid, start } = processOf(process.pid)
    const acknowledged = primary(a.client, api, network, { ...patient, netns: pid, start })
    await a.client.line(({ word }) => word === 'alone')
    await answered(a.client)
    const { word, values } = await acknowledged
    expect([word, values['reason']]).toEqual(['failed', expect.stringContaining('not permitted')])
  })

  test('D8.switch: a transaction that takes the pod a second holds up no other pod, and packets pass again after it', async () => {
    await using network = await createNetwork(app)
    await serve(network)
    await using one = await startSentinel(program)
    const a = await join(one)
    await acknowledge(a.client, network, { timeout: 1_200 })
    // Ticks measure only time in which this process has a processor.
    let ticks = 0
    let longest = 0
    const ticking = setInterval(() => {
      ticks += 1
    }, 10)
    // On a busy machine nearly all of a transaction can pass while this process waits.
    while (ticks < enoughTicks) {
      ;[ticks, longest] = [0, 0]
      const busy = await beginTransaction(network.pod, one.pid)
      // The switch is renewed with some of these answers, and that waits for the transaction.
      while (busy.stdout() === 'begins\n') {
        const before = ticks
        await answered(a.client)
        longest = Math.max(longest, ticks - before)
        await new Promise(resolve => setTimeout(resolve, 5))
      }
    }
    clearInterval(ticking)
    // A sentinel that waits as well is silent for nearly all of the transaction.
    expect(longest).toBeLessThan(ticks / 2)
    await eventually(async () => {
      await answered(a.client)
      expect(ask(network, lostMs)).toBe('word word')
    })
    await unprimary(a.client)
  })

  test('D8.switch: a kernel that takes long for each renewal does not hold up the sentinel', async () => {
    await using network = await createNetwork(app)
    // Every transaction counts as long.
    await using one = await startSentinel(await buildProgram('sentinel', {}, { SLOW_NS: -1 }))
    const a = await join(one)
    await acknowledge(a.client, network)
    await a.client.line(({ word }) => word === 'serves')
    await a.client.line(({ word }) => word === 'stops')
    await answered(a.client)
    await a.client.line(({ word }) => word === 'serves')
    await unprimary(a.client)
  })
})
