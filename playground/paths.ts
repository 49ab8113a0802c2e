import { join, resolve } from 'node:path'

/** Returns the directory that holds one directory for each cluster. */
export function stateRoot(env: NodeJS.ProcessEnv = process.env): string {
  const root = resolve(env['UNDERSTUDY_STATE'] ?? '/var/lib/understudy')
  // These characters need escaping in overlay mount options, and kernels differ in that.
  if (/[:,\\\s]/.test(root))
    throw new Error(`the state directory ${root} must not contain ":", ",", "\\" or spaces`)
  return root
}

export interface ClusterPaths {
  readonly root: string
  /** Record of the running parts (state.ts). */
  readonly state: string
  readonly lock: string
  /** The administrator's kubeconfig, for kubectl on this machine. */
  readonly kubeconfig: string
  /** Keys and certificates of the control plane; bind-mounted into it. */
  readonly pki: string
  readonly bin: string
  readonly logs: string
  readonly auditLog: string
  machine(name: string): MachinePaths
}

export interface MachinePaths {
  readonly root: string
  /** /opt/understudy/machine inside the machine. */
  readonly files: string
  readonly logs: string
  readonly init: string
  /** Holds the pid of its first process, as this machine sees it. */
  readonly pidFile: string
  /** Appears when the machine has switched to its own root file system. */
  readonly booted: string
  readonly upper: string
  readonly work: string
  readonly merged: string
  /** Returns a directory on the real disk, for file systems that an overlay cannot hold. */
  readonly disk: (name: string) => string
}

export function clusterPaths(name: string, root = stateRoot()): ClusterPaths {
  const cluster = join(root, name)
  const logs = join(cluster, 'logs')
  return {
    root: cluster,
    state: join(cluster, 'state.json'),
    // Outside the directory, because that is deleted and recreated.
    lock: join(root, `.${name}.lock`),
    kubeconfig: join(cluster, 'kubeconfig'),
    pki: join(cluster, 'pki'),
    bin: join(cluster, 'bin'),
    logs,
    auditLog: join(logs, 'cp', 'audit.log'),
    machine(machineName) {
      const machine = join(cluster, 'machines', machineName)
      return {
        root: machine,
        files: join(machine, 'files'),
        logs: join(logs, machineName),
        init: join(machine, 'init.sh'),
        pidFile: join(machine, 'init.pid'),
        booted: join(machine, 'files', 'booted'),
        upper: join(machine, 'upper'),
        work: join(machine, 'work'),
        merged: join(machine, 'merged'),
        disk: disk => join(machine, 'disk', disk),
      }
    },
  }
}
