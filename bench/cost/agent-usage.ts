import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { cgroupTree } from '../../playground/cgroups.ts'
import type { Cluster } from '../../playground/cluster.ts'
import { isGone } from '../../playground/process.ts'
import type { Api } from '../../src/kube/api.ts'
import { agentPods } from '../../zoo/slots.ts'
import { cgroupsOfNode } from '../node/cgroups.ts'

/**
 * Resources that a node's agent has used: its pod, and the sentinel with everything it runs (CRIU, copies of layers).
 */
export interface AgentUsage {
  readonly cpuSeconds: number
  /** The part of it of the sentinel, and of what that runs. */
  readonly sentinelCpuSeconds: number
  /** Bytes other than page cache: of processes, and of saved memory, which lies in a tmpfs. */
  readonly memory: number
  /** The part of it in a tmpfs. */
  readonly saved: number
}

/** The sentinel's own cgroup beside the pods', as the agent names it. */
const sentinelCgroup = 'understudy'

export async function agentUsage(api: Api, cluster: Cluster, node: string): Promise<AgentUsage> {
  const uid = (await agentPods(api)).find(({ spec }) => spec?.nodeName === node)?.metadata.uid
  if (uid === undefined) throw new Error(`no agent runs on ${node}`)
  const isOurs = (path: string) =>
    basename(path) === sentinelCgroup ||
    basename(path).includes(uid) ||
    basename(path).includes(uid.replaceAll('-', '_'))
  const directories: string[] = []
  for (const group of await cgroupsOfNode(cluster, node))
    directories.push(...(await cgroupTree(group)).filter(isOurs))
  const usage = await usageOf(directories)
  if (usage.cpuSeconds === 0) throw new Error(`the agent of ${node} is in no cgroup with accounting`)
  const sentinels = await usageOf(directories.filter(path => basename(path) === sentinelCgroup))
  return { ...usage, sentinelCpuSeconds: sentinels.cpuSeconds }
}

/** @param directories cgroups of which none is below another, each in every existing hierarchy */
export async function usageOf(
  directories: readonly string[],
): Promise<Omit<AgentUsage, 'sentinelCpuSeconds'>> {
  const sum = { v1: 0, v2: 0, processes: 0, saved: 0 }
  for (const directory of directories) {
    const ns = await readOrNothing(join(directory, 'cpuacct.usage'))
    const us = /^usage_usec (\d+)$/m.exec(await readOrNothing(join(directory, 'cpu.stat')))?.[1]
    sum.v1 += Number(ns) / 1e9
    sum.v2 += Number(us ?? 0) / 1e6
    const { processes, saved } = await memory(directory)
    sum.processes += processes
    sum.saved += saved
  }
  // In hybrid mode both hierarchies report the same time.
  const { saved } = sum
  return { cpuSeconds: sum.v1 > 0 ? sum.v1 : sum.v2, memory: sum.processes + saved, saved }
}

async function memory(directory: string): Promise<{ readonly processes: number; readonly saved: number }> {
  const stat = await readOrNothing(join(directory, 'memory.stat'))
  const field = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(stat)?.[1] ?? 0)
  // On v1 the `total_` fields include the groups below; on v2 the plain fields do.
  return stat.includes('total_rss')
    ? { processes: field('total_rss'), saved: field('total_shmem') }
    : { processes: field('anon'), saved: field('shmem') }
}

async function readOrNothing(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (isGone(error)) return ''
    throw error
  }
}
