import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../kube/log.ts'
import { readIfThere } from './container/process.ts'

/**
 * A node's connection tracking remembers TCP connections that were reset (for ten seconds) or not answered (for two minutes). A
 * client that connects again from the same port in this time is led to where that connection led. After a failover that is
 * the dead pod, or its lost node, and no pod answers there. A client with many connections uses such ports again soon. So the
 * nodes of agents forget them. See docs/adr/0143.
 *
 * The settings are the node's, so its own values are kept for the end of the agents here.
 */
export interface ForgottenConnections {
  /**
   * Sets what is wanted, and gives the node its own value back for the rest, unless another program has written one since.
   * Idempotent, also for the next agent. Each setting is tried.
   *
   * @throws AggregateError with all that failed.
   */
  keep(wanted: ReadonlySet<SettingName>): Promise<void>
}

export type SettingName = 'resets' | 'unanswered'

export interface Setting {
  readonly name: SettingName
  /** Of this process's network, which is the node's. */
  readonly path: string
  /** Seconds. */
  readonly value: string
  /** Name of the file with the node's own value, and ours. */
  readonly record: string
}

const conntrack: readonly Setting[] = [
  {
    name: 'resets',
    path: '/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close',
    value: '0',
    record: 'conntrack-close',
  },
  {
    // Less would keep clients from hosts that are slow to answer.
    name: 'unanswered',
    path: '/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_syn_sent',
    value: '3',
    record: 'conntrack-syn-sent',
  },
]

/** @param runDirectory volatile, as the settings are. */
export function createForgottenConnections(
  runDirectory: string,
  settings: readonly Setting[] = conntrack,
): ForgottenConnections {
  const begin = async ({ path, value, record }: Setting) => {
    const now = await textIn(path)
    if (now === undefined || now === value) return
    const known = await recordIn(join(runDirectory, record), value)
    // An agent of another version may have written another value.
    const own = known !== undefined && known.ours === now ? known.own : now
    // First: a process that ends between the two must not leave its own value as the node's.
    await writeFile(join(runDirectory, record), `${own} ${value}`)
    await writeFile(path, value)
  }
  const end = async ({ path, value, record }: Setting) => {
    const known = await recordIn(join(runDirectory, record), value)
    if (known === undefined) return
    if ((await textIn(path)) === known.ours) await writeFile(path, known.own)
    await rm(join(runDirectory, record))
  }
  return {
    async keep(wanted) {
      const all = settings.map(setting => (wanted.has(setting.name) ? begin(setting) : end(setting)))
      const failed = (await Promise.allSettled(all)).flatMap(each =>
        each.status === 'rejected' ? [each.reason] : [],
      )
      if (failed.length > 0) throw new AggregateError(failed, 'settings of connection tracking')
    },
  }
}

/** Logs a failure: failovers work without it. */
export async function forgetConnections(
  connections: ForgottenConnections,
  { forgetResets, forgetUnanswered }: { readonly forgetResets: boolean; readonly forgetUnanswered: boolean },
  log: Log,
): Promise<void> {
  const wanted = new Set<SettingName>()
  if (forgetResets) wanted.add('resets')
  if (forgetUnanswered) wanted.add('unanswered')
  try {
    await connections.keep(wanted)
  } catch (error) {
    log.warn({ err: error }, 'the node remembers some connections that were reset or not answered')
  }
}

const textIn = async (path: string): Promise<string | undefined> => (await readIfThere(path))?.trim()

/** @param value ours, if an agent of an earlier version has recorded the node's own value alone. */
async function recordIn(path: string, value: string) {
  const [own, ours = value] = (await textIn(path))?.split(' ') ?? []
  return own === undefined ? undefined : { own, ours }
}
