import { generationsKey } from '../api/generations-key.ts'
import type { MemoryNamespaces } from '../api/memory-permission.ts'
import type { InjectedResources } from '../backuppodset/pod/injected-container.ts'
import { defaultStateBudget } from '../backuppodset/pulled/budget.ts'

/** The operator's configuration: one type, each with a default, all of it in `--help`. */
export interface OperatorOptions {
  /** The operator's own namespace: its Lease and its Secret live there. */
  readonly namespace: string
  /** Where the agents run, and read the key of what they write to disks. */
  readonly agentsNamespace: string
  /** Where sets may ask for memory. */
  readonly memoryNamespaces: MemoryNamespaces
  /** Image of the gate of cold backups. */
  readonly wakerImage: string
  /** Requests and limits of what is added to pods. */
  readonly injectedResources?: InjectedResources | undefined
  /** This process among the replicas. */
  readonly identity: string
  readonly kubeconfig: string | undefined
  /** Passes over different sets at the same time. */
  readonly workers: number
  /** Connections for bulk requests; urgent ones have others. */
  readonly connections: number
  /** `memory`, or the URL of a Redis: where history and pulled state outlive the operator. */
  readonly stateStore: string
  readonly stateStoreCa?: string | undefined
  readonly stateStorePassword?: string | undefined
  /** Bytes that pulled states of all sets may take up in this process; no namespace takes more than half of it. */
  readonly stateBudget: number
  readonly leaderElect: boolean
  readonly healthPort: number
  readonly metricsPort: number
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
}

export const defaults = {
  agentsNamespace: generationsKey.namespace,
  memoryNamespaces: 'labelled',
  workers: 8,
  connections: 24,
  stateStore: 'memory',
  stateBudget: defaultStateBudget(),
  healthPort: 8081,
  metricsPort: 8080,
  logLevel: 'info',
} as const
