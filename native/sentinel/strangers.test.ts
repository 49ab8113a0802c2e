import { beforeAll, describe, expect, test } from 'vitest'
import { buildProgram } from '../build.ts'
import { buildApp, buildSanitized } from './testing/build.ts'
import { askGrave, dig } from './testing/graves.ts'
import { cannotNetwork, createNetwork, type Network } from './testing/network.ts'
import { processOf, startSentinel, type Values } from './testing/sentinel.ts'

describe.skipIf(cannotNetwork !== undefined).each([
  ['release build', () => buildProgram('sentinel')],
  ['sanitized build', () => buildSanitized('sentinel')],
])(`strangers, %s ${cannotNetwork ?? ''}`, (_, build) => {
  let program: string
  let app: string
  beforeAll(async () => {
    program = await build()
    app = await buildApp()
  })

  const refused = 'error 111'
  const heirOf = ({ heir }: Network, from: string | readonly string[]): Values => {
    const { pid, start } = processOf(heir.sandbox.pid)
    return { netns: pid, start, from }
  }

  test('D8.strangers: a primary refuses the clients of a slot whose heir it was, and nobody else', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const { pod, heir } = network
    const client = await sentinel.connect()
    const dead = await pod.serve('dead')
    await heir.serve('heir')
    await dig(client, network, 'p', dead.pid)
    const askBoth = () => (['tcp', 'udp'] as const).map(protocol => network.ask(protocol))
    process.kill(dead.pid, 'SIGKILL')
    await client.line(line => line.word === 'died')
    expect(askBoth()).toEqual(['heir 10.0.0.2', 'heir 10.0.0.2'])

    // A list replaces the one before.
    expect(await client.ask('strangers', heirOf(network, '10.0.0.9'))).toMatchObject({ word: 'ok' })
    expect(askBoth()).toEqual(['heir 10.0.0.2', 'heir 10.0.0.2'])
    expect(
      await client.ask('strangers', heirOf(network, ['10.0.0.9', pod.address, pod.address, pod.address6])),
    ).toMatchObject({ word: 'ok' })
    expect(askBoth()).toEqual([refused, refused])
    // Its other clients reach it, also the program in the dead pod.
    for (const protocol of ['tcp', 'udp'] as const) {
      expect(network.ask(protocol, 8080, heir.address)).toBe('heir 10.0.0.1')
      expect(pod.run(app, ['ask', protocol, heir.address, '8080'])).toBe('heir 10.0.0.2\n')
      expect(pod.run(app, ['ask', protocol, heir.address6, '8080'])).toBe('heir fd00::2\n')
    }

    // An empty list lets them in again.
    expect(await client.ask('strangers', heirOf(network, []))).toMatchObject({ word: 'ok' })
    expect(askBoth()).toEqual(['heir 10.0.0.2', 'heir 10.0.0.2'])

    // By IPv6, too.
    expect((await client.ask('strangers', heirOf(network, pod.address6))).word).toBe('ok')
    await askGrave(client, { name: 'p', heir: heir.address6 })
    expect(network.ask('tcp', 8080, pod.address6)).toBe(refused)
    expect(network.ask('tcp', 8080, heir.address6)).toBe('heir fd00::1')
  })

  test('D8.strangers: nor does a dead one lead them to its successor', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const { pod, heir, client: third } = network
    const client = await sentinel.connect()
    const dead = await pod.serve('dead')
    const next = await heir.serve('heir')
    await third.serve('successor')
    await dig(client, network, 'p', dead.pid)
    expect((await client.ask('watch', { name: 'h', ...processOf(next.pid) })).word).toBe('watching')
    const { pid, start } = processOf(heir.sandbox.pid)
    await askGrave(client, { name: 'h', netns: pid, start, heir: third.address })
    for (const one of [dead, next]) {
      process.kill(one.pid, 'SIGKILL')
      await client.line(line => line.word === 'died')
    }
    expect(network.ask('tcp')).toBe('successor 10.0.0.3')
    expect((await client.ask('strangers', heirOf(network, pod.address))).word).toBe('ok')
    expect(network.ask('tcp')).toBe(refused)
    expect(network.ask('tcp', 8080, heir.address)).toBe('successor 10.0.0.3')
  })

  test('D8.strangers: a list that is none, or too long, is refused', async () => {
    await using sentinel = await startSentinel(program)
    await using network = await createNetwork(app)
    const client = await sentinel.connect()
    const ask = async (from: string | readonly string[]) => {
      const { word, values } = await client.ask('strangers', heirOf(network, from))
      return [word, values['reason']]
    }
    const many = Array.from({ length: 65 }, (_, i) => `10.1.0.${i}`)
    expect(await ask('nobody')).toEqual(['refused', 'bad-from'])
    expect(await ask(many)).toEqual(['refused', 'bad-from'])
    expect(await ask(many.slice(1))).toEqual(['ok', undefined])
    const { pid, start } = processOf(process.pid)
    // The sentinel leaves the network of the node as it is.
    expect((await client.ask('strangers', { netns: pid, start, from: '10.0.0.9' })).word).toBe('failed')
  })
})
