import { expect } from 'vitest'
import { eventually } from '../../../test/support/eventually.ts'
import type { Network } from './network.ts'
import { type Client, processOf, type Values } from './sentinel.ts'

/** Watches a process, and prepares a redirect of its pod to the heir. */
export async function dig(
  client: Client,
  network: Network,
  name: string,
  watched: number,
  more: Values = {},
) {
  expect((await client.ask('watch', { name, ...processOf(watched) })).word).toBe('watching')
  const { pid, start: begun } = processOf(network.pod.sandbox.pid)
  return askGrave(client, { name, netns: pid, start: begun, heir: network.heir.address, ...more })
}

/** On a busy machine the kernel may take longer for the tables than the sentinel waits. An agent asks again, too. */
export const askGrave = (client: Client, request: Values) =>
  eventually(async () => {
    const reply = await client.ask('grave', request)
    expect(reply.word).not.toBe('failed')
    return reply
  })
