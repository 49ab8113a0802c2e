import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../kube/log.ts'
import { readIfThere } from './container/process.ts'

/**
 * For ten seconds, a node's connection tracking remembers a TCP connection that was reset. A client that connects again from
 * the same port in this time is led to where the reset connection led. After a failover that is the dead pod, and no pod
 * answers there once it is gone. A client with many connections uses such ports again soon. So the nodes of agents
 * remember no resets. See docs/adr/0143.
 *
 * The setting is the node's, so its own value is kept for the end of the agents here.
 */
export interface ForgottenResets {
  /** Idempotent, also for the next agent. A node without connection tracking has nothing to forget. */
  begin(): Promise<void>
  /** Gives the node its own value back, unless another program has written one since. */
  end(): Promise<void>
}

/** Of this process's network, which is the node's. Seconds. */
const conntrackClose = '/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close'
const atOnce = '0'

/** @param runDirectory volatile, as the setting is. */
export function createForgottenResets(runDirectory: string, setting = conntrackClose): ForgottenResets {
  const record = join(runDirectory, 'conntrack-close')
  return {
    async begin() {
      const now = await textIn(setting)
      if (now === undefined || now === atOnce) return
      // First: a process that ends between the two must not leave its own value as the node's.
      await writeFile(record, now)
      await writeFile(setting, atOnce)
    },
    async end() {
      const own = await textIn(record)
      if (own === undefined) return
      if ((await textIn(setting)) === atOnce) await writeFile(setting, own)
      await rm(record)
    },
  }
}

/** Logs a failure: failovers work without it. */
export async function forgetResets(resets: ForgottenResets, isWanted: boolean, log: Log): Promise<void> {
  try {
    await (isWanted ? resets.begin() : resets.end())
  } catch (error) {
    log.warn({ err: error }, 'the node remembers reset connections as before')
  }
}

const textIn = async (path: string): Promise<string | undefined> => (await readIfThere(path))?.trim()
