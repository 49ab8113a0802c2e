/** The playground under test, for what needs nodes: their networks, their processes, power cuts. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { inject } from 'vitest'
import { type Cluster, openCluster } from '../../../playground/cluster.ts'

/** Why tests that reach into nodes are skipped, or undefined on a playground. */
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

/** kubectl with all rights, as a user types it. */
export async function kubectl(...args: string[]): Promise<string> {
  const { kubeconfig, playground: name } = inject('cluster')
  const program = name === undefined ? 'kubectl' : (await playground()).kubectl
  return (await run(program, ['--kubeconfig', kubeconfig, ...args])).stdout
}
