import { generationsKey } from '../api/generations-key.ts'
import type { InjectedResources } from '../api/injected-resources.ts'
import type { MemoryNamespaces } from '../api/memory-permission.ts'
import { defaultBudgets } from '../migration/budgets.ts'
import { defaultStateBudget } from '../slot/http-state/budget.ts'
import type { TraceOptions } from '../traces/open.ts'

/** The operator's configuration: the only type for it; `--help` documents all options and defaults. */
export interface OperatorOptions extends TraceOptions {
  /** The operator's own namespace, with its Lease and its Secret. */
  readonly namespace: string
  /** Namespace of the agents, with the key of the generations that they write to disks. */
  readonly agentNamespace: string
  /** Namespaces in which sets may ask for memory. */
  readonly memoryNamespaces: MemoryNamespaces
  /** Carry out PodMigrationJobs: they need rights of their own. */
  readonly podMigrationJobs: boolean
  /** Manage Jobs whose `spec.managedBy` names this operator: they need rights of their own. */
  readonly migratingJobs: boolean
  /** Carry out ClonePods: they need rights of their own. */
  readonly clonePods: boolean
  /** How many Migrations may be under way at once. */
  readonly migrationsPerSet: number
  readonly migrationsPerNode: number
  readonly migrationsPerNamespace: number
  readonly migrations: number
  /** Image of the gate of cold backups. */
  readonly wakerImage: string
  /** Requests and limits of the containers that the operator adds to pods. */
  readonly injectedResources?: InjectedResources | undefined
  /** Identity of this process among the replicas. */
  readonly identity: string
  readonly kubeconfig: string | undefined
  /** Number of sets that are reconciled in parallel. */
  readonly workers: number
  /** Connections for bulk requests; urgent ones have others. */
  readonly connections: number
  /** `memory`, or the URL of a Redis, in which history and pulled state outlive the operator. */
  readonly stateStore: string
  readonly stateStoreCa?: string | undefined
  readonly stateStorePassword?: string | undefined
  /** Bytes that this process may use for pulled states of all sets; at most half of them for one namespace. */
  readonly stateBudget: number
  readonly leaderElect: boolean
  readonly healthPort: number
  readonly metricsPort: number
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
}

export const defaults = {
  agentNamespace: generationsKey.namespace,
  memoryNamespaces: 'labelled',
  podMigrationJobs: false,
  migratingJobs: false,
  clonePods: false,
  migrationsPerSet: defaultBudgets.perSet,
  migrationsPerNode: defaultBudgets.perNode,
  migrationsPerNamespace: defaultBudgets.perNamespace,
  migrations: defaultBudgets.total,
  workers: 8,
  connections: 24,
  stateStore: 'memory',
  stateBudget: defaultStateBudget(),
  healthPort: 8081,
  metricsPort: 8080,
  logLevel: 'info',
} as const
