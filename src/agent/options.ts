import { operatorElection } from '../api/election.ts'
import { generationsKey } from '../api/generations-key.ts'
import type { TraceOptions } from '../traces/open.ts'

/** The agent's configuration. Each option has a default, and all are in `--help`. */
export interface AgentOptions extends TraceOptions {
  /** Name of the agent's node, as in the API server. */
  readonly node: string
  /** Address of the node at which peers reach this agent. */
  readonly address: string
  readonly kubeconfig: string | undefined
  readonly peerPort: number
  /** UDP port at which the sentinels of other nodes reach this node's. */
  readonly heartbeatPort: number
  readonly healthPort: number
  readonly metricsPort: number
  /** Limit of the generations on this node, bytes: see `budgetOf`. */
  readonly memoryBudget: number
  /** Limit of one namespace's generations, in percent of the part of each budget that other namespaces leave. */
  readonly namespaceShare: number
  /** Limit of the generations on the node's disk, bytes; 0: none is written there. */
  readonly diskBudget: number
  /** Seconds between two copies of a slot on the disk. */
  readonly diskInterval: number
  /** When the kernel records which pages of pods are written, so that a checkpoint reads only those: see docs/adr/0135. */
  readonly recordWrites: (typeof whenWritesAreRecorded)[number]
  /** Lets the node's connection tracking forget TCP connections that were reset: see docs/adr/0143. */
  readonly forgetResets: boolean
  /** Lets it soon forget those that were not answered. */
  readonly forgetUnanswered: boolean
  /** Namespace of the agents, with their Secret. */
  readonly namespace: string
  /** Namespace in which operators elect their leader; its Lease shows whether one leads. */
  readonly operatorNamespace: string
  /** Directory of volatile files: the sentinel's socket and the generations. */
  readonly runDirectory: string
  /** Directory of files that outlive a reboot: programs, the agent's key. */
  readonly stateDirectory: string
  /** Directory of the native programs in the image. */
  readonly binaries: string
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
}

/** `Moves`: from the request for a handover until its end. */
export const whenWritesAreRecorded = ['Moves', 'Always', 'Never'] as const

export const defaults = {
  peerPort: 9443,
  heartbeatPort: 9443,
  healthPort: 9444,
  metricsPort: 9445,
  memoryBudget: 512 * 1024 * 1024,
  namespaceShare: 75,
  diskBudget: 2 * 1024 * 1024 * 1024,
  diskInterval: 60,
  recordWrites: 'Never',
  forgetResets: true,
  forgetUnanswered: true,
  namespace: generationsKey.namespace,
  operatorNamespace: operatorElection.namespace,
  runDirectory: '/run/understudy',
  stateDirectory: '/var/lib/understudy',
  binaries: '/opt/understudy',
  logLevel: 'info',
} as const

/**
 * Returns the budget of generations, by the memory limit of the agent, bytes. Pages of a tmpfs count as memory of the
 * process that wrote them, and the agent writes everything that a holder receives. The other half is for the transfers
 * themselves.
 */
export const budgetOf = (memoryLimit: number): number => Math.max(Math.floor(memoryLimit / 2), 1)
