import { readFile } from 'node:fs/promises'
import { pidsOf } from '../../playground/pids.ts'

/** Returns the pid of a container's process, as this machine sees it; `program` is the executable's file name. */
export const pidInPod = async (podUid: string, program: string): Promise<number | undefined> =>
  (await pidsOf(podUid, program))[0]

export interface ProcessMemory {
  /** Bytes in memory, shared pages counted in full. */
  readonly rss: number
  /** Bytes in memory, shared pages divided by the number of their users. */
  readonly pss: number
  /** Bytes that only this process uses. */
  readonly private: number
}

export async function memoryOf(pid: number): Promise<ProcessMemory> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8')
  return {
    rss: field(text, 'Rss'),
    pss: field(text, 'Pss'),
    private: field(text, 'Private_Clean') + field(text, 'Private_Dirty'),
  }
}

/**
 * Returns a field of smaps_rollup, bytes.
 * @throws Error if it is missing
 */
export function field(text: string, name: string): number {
  const match = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)
  if (match === null) throw new Error(`no ${name} in smaps_rollup`)
  return Number(match[1]) * 1024
}

/** Returns the memory controller's count for a process' own cgroup (page cache and kernel memory included), bytes. */
export async function cgroupMemoryOf(pid: number): Promise<number> {
  const groups = (await readFile(`/proc/${pid}/cgroup`, 'utf8')).trim().split('\n')
  for (const line of groups) {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    if (controllers.split(',').includes('memory'))
      return Number(await readFile(`/sys/fs/cgroup/memory${path}/memory.usage_in_bytes`, 'utf8'))
    if (controllers === '' && groups.length === 1)
      return Number(await readFile(`/sys/fs/cgroup${path}/memory.current`, 'utf8'))
  }
  throw new Error(`process ${pid} is in no memory cgroup`)
}
