import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { cgroupTree } from '../../playground/cgroups.ts'
import type { Cluster } from '../../playground/cluster.ts'
import { isGone } from '../../playground/process.ts'
import type { Api } from '../../src/kube/api.ts'
import { agentPods } from '../../zoo/slots.ts'
import { cgroupsOfNode } from '../node/cgroups.ts'

/** What the agent of a node has used: its pod, and the sentinel with all that it runs (CRIU, copies of layers). */
export interface AgentUsage {
  readonly cpuSeconds: number
  /** Bytes that are not page cache: of processes, and of saved memory, which lies in a tmpfs. */
  readonly memory: number
}

/** Its own cgroup beside the pods', as the agent names it. */
const sentinelCgroup = 'understudy'

export async function agentUsage(api: Api, cluster: Cluster, node: string): Promise<AgentUsage> {
  const uid = (await agentPods(api)).find(({ spec }) => spec?.nodeName === node)?.metadata.uid
  if (uid === undefined) throw new Error(`no agent runs on ${node}`)
  const isOurs = (path: string) =>
    basename(path) === sentinelCgroup ||
    basename(path).includes(uid) ||
    basename(path).includes(uid.replaceAll('-', '_'))
  const usage = { cpuSeconds: 0, memory: 0 }
  for (const group of await cgroupsOfNode(cluster, node))
    for (const directory of (await cgroupTree(group)).filter(isOurs)) {
      usage.cpuSeconds += await cpuSeconds(directory)
      usage.memory += await memory(directory)
    }
  if (usage.cpuSeconds === 0) throw new Error(`the agent of ${node} is in no cgroup that counts`)
  return usage
}

/** Of a cgroup with all below it; 0 in hierarchies that count something else. */
async function cpuSeconds(directory: string): Promise<number> {
  const v1 = await readOrNothing(join(directory, 'cpuacct.usage'))
  if (v1 !== '') return Number(v1) / 1e9
  const v2 = /^usage_usec (\d+)$/m.exec(await readOrNothing(join(directory, 'cpu.stat')))
  return Number(v2?.[1] ?? 0) / 1e6
}

async function memory(directory: string): Promise<number> {
  const stat = await readOrNothing(join(directory, 'memory.stat'))
  const field = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(stat)?.[1] ?? 0)
  // v1 names what lies below a group as well `total_`; v2's plain names mean that.
  return stat.includes('total_rss')
    ? field('total_rss') + field('total_shmem')
    : field('anon') + field('shmem')
}

async function readOrNothing(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (isGone(error)) return ''
    throw error
  }
}
