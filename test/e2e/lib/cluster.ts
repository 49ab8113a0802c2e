/** The playground under test, for tests that need nodes: their networks, their processes, power cuts. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { inject } from 'vitest'
import { type Cluster, openCluster } from '../../../playground/cluster.ts'

/** Returns the reason why tests that reach into nodes are skipped, or undefined on a playground. */
export const needsNodes = (): string | undefined =>
  inject('cluster').playground === undefined
    ? 'reaches into nodes, which only the playground allows'
    : undefined

export async function playground(): Promise<Cluster> {
  const { playground: name } = inject('cluster')
  const cluster = name === undefined ? undefined : await openCluster(name)
  if (cluster === undefined) throw new Error('this test needs a playground')
  return cluster
}

const run = promisify(execFile)
/** Logs of a whole run are large. */
const maxBuffer = 1 << 28

/** Runs kubectl with all rights, as a user would. */
export async function kubectl(...args: string[]): Promise<string> {
  const { kubeconfig, playground: name } = inject('cluster')
  const program = name === undefined ? 'kubectl' : (await playground()).kubectl
  return (await run(program, ['--kubeconfig', kubeconfig, ...args], { maxBuffer })).stdout
}
