import { beforeAll, describe, expect, test } from 'vitest'
import { buildProgram } from '../build.ts'
import { buildApp, buildSanitized } from './testing/build.ts'
import { dig } from './testing/graves.ts'
import { cannotNetwork, createNetwork, type Network } from './testing/network.ts'
import { type Client, startSentinel } from './testing/sentinel.ts'

const refused = 'error 111'
const silence = 'error 11'

const protocols = ['tcp', 'udp'] as const

describe.skipIf(cannotNetwork !== undefined).each([
  ['release build', () => buildProgram('sentinel')],
  ['sanitized build', () => buildSanitized('sentinel')],
])(`a grave of a pod with two families, %s ${cannotNetwork ?? ''}`, (_, build) => {
  let program: string
  let app: string
  beforeAll(async () => {
    program = await build()
    app = await buildApp()
  })

  /** Asks until there is an answer or an error. A kernel need not send the ICMP message by which UDP is refused, and a busy one is late. */
  function answer(network: Network, protocol: (typeof protocols)[number], address: string): string {
    for (let left = 3; ; left -= 1) {
      const text = network.ask(protocol, 8080, address)
      if (text !== silence || left === 0) return text
    }
  }
  /** The client's answers from the pod: over TCP and UDP of IPv4, then of IPv6. */
  const answers = (network: Network): string[] =>
    [network.pod.address, network.pod.address6].flatMap(address =>
      protocols.map(protocol => answer(network, protocol, address)),
    )

  const alive = ['alive 10.0.0.1', 'alive 10.0.0.1', 'alive fd00::1', 'alive fd00::1']

  /** Kills the process, and starts another server in its place. */
  async function replace(client: Client, network: Network, pid: number): Promise<void> {
    process.kill(pid, 'SIGKILL')
    expect(await client.line(line => line.word === 'died')).toMatchObject({ values: { grave: 'closed' } })
    await network.pod.serve('impostor')
  }

  test('D7.grave: the heir has an address of IPv6: its family goes there, the other one is refused', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const dead = await network.pod.serve('alive')
    await network.heir.serve('heir')
    expect((await dig(client, network, 'p', dead.pid, { heir: network.heir.address6 })).word).toBe('ready')
    expect(answers(network)).toEqual(alive)
    await replace(client, network, dead.pid)
    expect(answers(network)).toEqual([refused, refused, 'heir fd00::2', 'heir fd00::2'])
    // Another heir, of the other family.
    expect((await client.ask('grave', { name: 'p', heir: network.heir.address })).word).toBe('closed')
    expect(answers(network)).toEqual(['heir 10.0.0.2', 'heir 10.0.0.2', refused, refused])
    expect((await client.ask('exhume', { name: 'p' })).word).toBe('ok')
    expect(answers(network)).toEqual(alive.map(answer => answer.replace('alive', 'impostor')))
  })

  test('D7.grave: the heir has an address of IPv4: clients of IPv6 never hear what is started in the pod', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const dead = await network.pod.serve('alive')
    await network.heir.serve('heir')
    await dig(client, network, 'p', dead.pid)
    await replace(client, network, dead.pid)
    expect(answers(network)).toEqual(['heir 10.0.0.2', 'heir 10.0.0.2', refused, refused])
    // The pod reaches itself, and gets the answers to what it asks.
    for (const protocol of protocols) {
      expect(network.pod.run(app, ['ask', protocol, '::1', '8080'])).toBe('impostor ::1\n')
      expect(network.pod.run(app, ['ask', protocol, network.heir.address6, '8080'])).toBe('heir fd00::2\n')
    }
  })

  test('a UDP conversation of IPv6 from before the death goes to the heir too', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const dead = await network.pod.serve('dead')
    await network.heir.serve('heir')
    await dig(client, network, 'p', dead.pid, { heir: network.heir.address6 })
    const port = 40_000
    const ask = `const s = require('node:dgram').createSocket('udp6').bind(${port}); s.on('message', m => { console.log(String(m).split(' ')[0]); s.close() }); s.send('?', 8080, '${network.pod.address6}')`
    const answer = () => network.client.run(process.execPath, ['-e', ask])
    expect(answer()).toBe('dead\n')
    await replace(client, network, dead.pid)
    // The sentinel works sequentially: this reply shows that it has finished handling the death.
    await client.ask('hello')
    expect(answer()).toBe('heir\n')
  })

  test('a pod keeps a default route that it has learned from a router', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const setting = (name: string) => network.pod.run('cat', [`/proc/sys/net/ipv6/conf/eth0/${name}`]).trim()
    expect([setting('accept_ra'), setting('forwarding')]).toEqual(['1', '0'])
    const { pid } = await network.pod.serve('alive')
    await dig(client, network, 'p', pid)
    expect([setting('accept_ra'), setting('forwarding')]).toEqual(['2', '1'])
  })

  test('an address that no other pod can have is no heir', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const { pid } = await network.pod.serve('alive')
    for (const heir of ['::', '::1', 'ff02::1', 'fe80::2', '::ffff:10.0.0.3', '0.0.0.0', 'fd00::g', 'heir'])
      expect(await dig(client, network, heir, pid, { heir })).toMatchObject({
        word: 'refused',
        values: { reason: 'bad-heir' },
      })
  })
})
