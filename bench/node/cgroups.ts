import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { detectCgroups } from '../../playground/cgroups.ts'
import type { Cluster } from '../../playground/cluster.ts'
import { labelPrefix } from '../../playground/plan.ts'

/** Returns the cgroups of a playground's node, one in each hierarchy. */
export async function cgroupsOfNode({ name }: Cluster, node: string): Promise<string[]> {
  const { hierarchies } = await detectCgroups()
  return hierarchies.map(path => join(path, `${labelPrefix(name)}${node}`)).filter(path => existsSync(path))
}
