import { operatorElection } from '../api/election.ts'
import { generationsKey } from '../api/generations-key.ts'

/** The agent's configuration: one type, each with a default, all of it in `--help`. */
export interface AgentOptions {
  /** The node this agent runs on, as the API server calls it. */
  readonly node: string
  /** Where peers reach this agent: an address of the node. */
  readonly address: string
  readonly kubeconfig: string | undefined
  readonly peerPort: number
  readonly healthPort: number
  readonly metricsPort: number
  /** Bytes of generations kept here, at most: see `budgetOf`. */
  readonly memoryBudget: number
  /** Percent of what other namespaces leave of that, for the generations of one namespace. */
  readonly namespaceShare: number
  /** Bytes of generations on the node's disk, at most; 0: none is written there. */
  readonly diskBudget: number
  /** Seconds between two copies of a slot on the disk. */
  readonly diskInterval: number
  /** Namespace of the agents, with their Secret. */
  readonly namespace: string
  /** Where operators elect their leader: whether one is at work is seen there. */
  readonly operatorNamespace: string
  /** What is volatile: the sentinel's socket and the generations. */
  readonly runDirectory: string
  /** What outlives a reboot: binaries, the agent's key. */
  readonly stateDirectory: string
  /** Where the image has the native programs. */
  readonly binaries: string
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
}

export const defaults = {
  peerPort: 9443,
  healthPort: 9444,
  metricsPort: 9445,
  memoryBudget: 512 * 1024 * 1024,
  namespaceShare: 75,
  diskBudget: 2 * 1024 * 1024 * 1024,
  diskInterval: 60,
  namespace: generationsKey.namespace,
  operatorNamespace: operatorElection.namespace,
  runDirectory: '/run/understudy',
  stateDirectory: '/var/lib/understudy',
  binaries: '/opt/understudy',
  logLevel: 'info',
} as const

/**
 * What generations may take of what an agent may have, bytes: pages of a tmpfs count as memory of whoever wrote them, and
 * what a holder receives its agent writes. The other half is for receiving itself.
 */
export const budgetOf = (memoryLimit: number): number => Math.max(Math.floor(memoryLimit / 2), 1)
