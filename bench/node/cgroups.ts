import { cgroupsOf, detectCgroups } from '../../playground/cgroups.ts'
import type { Cluster } from '../../playground/cluster.ts'
import { labelPrefix } from '../../playground/plan.ts'

/** Those of a node of the playground, one in each hierarchy. */
export const cgroupsOfNode = async ({ name }: Cluster, node: string): Promise<string[]> =>
  cgroupsOf(await detectCgroups(), `${labelPrefix(name)}${node}`)
