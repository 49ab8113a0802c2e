import type { ProjectName } from './results.ts'

export interface Machine {
  readonly platform: NodeJS.Platform
  /** Effective user id; 0 is root. */
  readonly uid: number
  readonly env: Readonly<Record<string, string | undefined>>
  /** The tests use the user's own cluster instead of a playground. */
  readonly usesCurrentCluster: boolean
}

/**
 * Returns why the tests of a project are skipped here, or undefined if they run. In CI nothing is skipped: there a
 * missing prerequisite is a failure, which the project's own setup reports.
 */
export function whyNotHere(project: ProjectName, machine: Machine): string | undefined {
  if (project !== 'e2e' || machine.usesCurrentCluster || isCi(machine.env)) return undefined
  if (machine.platform !== 'linux')
    return `a cluster of real kubelets needs Linux, this is ${machine.platform}; with --use-current-cluster your own cluster is used`
  if (machine.uid !== 0)
    return 'a cluster of real kubelets needs root (network namespaces, mounts, cgroups): run npm test as root, or with --use-current-cluster on your own cluster'
  return undefined
}

const isCi = (env: Machine['env']): boolean => !['', '0', 'false'].includes(env['CI'] ?? '')
