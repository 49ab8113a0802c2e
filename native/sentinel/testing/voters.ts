/** Nodes of a cluster that vote on each other's primaries. */
import { randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import { buildSanitized } from './build.ts'
import { type Client, type Line, type Sentinel, startSentinel, type Values } from './sentinel.ts'

/** Long enough for a busy machine: a pause of this length ends a test. */
export const timeout = 1_500
export const apiRun = 'a'.repeat(16)
export const api = `API/${apiRun}`

/** A node of the cluster, as its sentinel sees itself. */
export interface Node {
  readonly name: string
  readonly sentinel: Sentinel
  readonly client: Client
  readonly port: number
  readonly run: string
  /** Waits for an event that no earlier call has returned. */
  event(word: string, about: Values): Promise<Line>
  ask(verb: string, values?: Values): Promise<string>
  /** Tells that the API server has answered now, and returns the reply. */
  answered(over?: Values): Promise<string>
}

export async function startNode(name: string, directory?: string): Promise<Node & AsyncDisposable> {
  const sentinel = await startSentinel(
    await buildSanitized('sentinel'),
    directory === undefined ? {} : { directory },
  )
  const client = await sentinel.connect()
  await client.ask('votes')
  const { values } = await client.ask('heartbeats', { port: 0 })
  const ask = async (verb: string, wanted?: Values) => {
    const { word, values: told } = await client.ask(verb, wanted)
    return told['reason'] === undefined ? word : `${word} ${told['reason']}`
  }
  return {
    ...{ name, sentinel, client, port: Number(values['port']), run: values['run'] ?? '' },
    event: (word, about) =>
      client.line(
        line =>
          line.word === word &&
          Object.entries(about).every(([key, value]) => line.values[key] === String(value)),
      ),
    ask,
    answered: over => ask('answered', { name: 'pod', epoch: 1, run: apiRun, sent: now(), ...over }),
    [Symbol.asyncDispose]: () => sentinel[Symbol.asyncDispose](),
  }
}

/** The time of the monotonic clock, as the sentinel reads it. */
const now = (): string => String(process.hrtime.bigint())

export const key = randomBytes(32).toString('hex')
export const voter = ({ name, run }: Node): string => `${name}/${run}`

export async function introduce(...nodes: readonly Node[]): Promise<void> {
  for (const one of nodes)
    for (const { name, port, run } of nodes)
      if (name !== one.name)
        expect(await one.ask('peer', { name, address: '127.0.0.1', port, run, key })).toBe('ok')
}

export const primary = (voters: readonly string[], over: Values = {}): Values => ({
  ...{ name: 'pod', slot: 'ns/web-0', epoch: 1, version: 1, timeout, voter: voters },
  ...over,
})
export const vote = ({ name, run }: Pick<Node, 'name' | 'run'>, over: Values = {}): Values => ({
  ...{ slot: 'ns/web-0', epoch: 1, node: name, run, timeout },
  ...over,
})
