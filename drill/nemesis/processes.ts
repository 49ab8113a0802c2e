import { readlink } from 'node:fs/promises'
import { basename } from 'node:path'
import { kill } from 'node:process'
import { cgroupsOf, detectCgroups, processesIn } from '../../playground/cgroups.ts'
import type { Cluster } from '../../playground/cluster.ts'

/** Returns the processes of a program on one machine: `cp` or a node. */
export async function processesOn(
  { plan }: Pick<Cluster, 'plan'>,
  machine: string,
  program: string,
): Promise<number[]> {
  const label = [plan.controlPlane, ...plan.nodes].find(({ name }) => name === machine)?.label
  if (label === undefined) throw new Error(`no machine ${machine}`)
  const cgroups = (await cgroupsOf(await detectCgroups(), label)).filter(path => basename(path) === label)
  const found: number[] = []
  for (const pid of await processesIn(cgroups)) {
    const file = await readlink(`/proc/${pid}/exe`).catch(() => '')
    if (basename(file) === program) found.push(pid)
  }
  return found
}

/** A process that has ended meanwhile needs no signal. */
export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids)
    try {
      kill(pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
}
