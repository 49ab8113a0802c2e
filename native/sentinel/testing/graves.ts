import { expect } from 'vitest'
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
  return client.ask('grave', { name, netns: pid, start: begun, heir: network.heir.address, ...more })
}
