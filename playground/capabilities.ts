import { readFile } from 'node:fs/promises'

const CAP_SYS_RESOURCE = 24n

/**
 * True if this process may lower an oom_score_adj. Without that right runc cannot give a pod's sandbox its negative
 * value, and every sandbox fails to start, unless containerd is configured to leave the value alone.
 */
export async function mayLowerOomScore(): Promise<boolean> {
  return hasCapability(await readFile('/proc/self/status', 'utf8'), CAP_SYS_RESOURCE)
}

export function hasCapability(status: string, capability: bigint): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1]
  if (effective === undefined) throw new Error('no CapEff in /proc/self/status')
  return ((BigInt(`0x${effective}`) >> capability) & 1n) === 1n
}
