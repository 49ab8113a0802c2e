/** One round: a working cluster, commands that disturb it, and time to recover. */

import { carryOut, heal } from './carry-out.ts'
import { createCluster } from './cluster.ts'
import type { Command } from './commands.ts'
import type { Violation } from './invariants/ground.ts'
import { createObserver } from './invariants.ts'
import { followMoves, type MoveFate, type OnPhase, onPhase } from './move-fates.ts'
import { moveLimitMs, openMoves } from './moves.ts'
import { modelPlatform, type Platform } from './platform.ts'
import { trace } from './trace.ts'

export interface Scenario {
  readonly seed: number
  readonly nodes: number
  readonly replicas: number
  readonly hotBackups: number
  readonly coldBackups: number
  readonly copies: number
  /** `two`: a second container with saved memory; `sidecar`: one without. */
  readonly containers: 'one' | 'two' | 'sidecar'
  /** False: the set saves no memory. */
  readonly memory?: boolean
  /** Default 4. */
  readonly unreadySeconds?: number
  /** The template has probes. */
  readonly probes?: boolean
  /** How long a node with primaries may be silent, ms. Absent: primaries have no voters. */
  readonly nodeTimeoutMs?: number | undefined
  /** Heirs get grants. */
  readonly grants?: boolean
  /** They announce that they resume. */
  readonly announced?: boolean
  /** False: the nodes' kernels cannot redirect the addresses of dead pods. */
  readonly graves?: boolean
  /** The set belongs to a MigratingPod: its pods have numbers, and one that is deleted is saved once more. */
  readonly numbered?: boolean
  /** There are nodes, Migrations and drains. */
  readonly moves?: boolean
  /** Faults that wait for a Migration. */
  readonly onPhase?: readonly OnPhase[]
  readonly steps: readonly { readonly afterMs: number; readonly command: Command }[]
}

export interface Round {
  readonly violations: readonly Violation[]
  readonly virtualMs: number
  /** How often memory was put on stage. */
  readonly thaws: number
  /** How many Migrations ended in which way. */
  readonly moves: Readonly<Record<string, number>>
  /** The end of each Migration, and what has its slot after all faults have ended. */
  readonly fates: readonly MoveFate[]
}

const intervalMs = 3_000
const settleMs = 30_000
const lookEveryMs = 500
/** After the last command, and again after all faults have ended. */
const lingerMs = 10_000
const recoverMs = 100_000
const wellMs = 4_000
/** Only some Migrations of a set are under way at once. */
const movesMs = 6 * moveLimitMs

export function specOf(scenario: Scenario): object {
  const { replicas, hotBackups, coldBackups, copies, containers, memory = true } = scenario
  const { probes = false, unreadySeconds = 4, nodeTimeoutMs, grants = false, announced = false } = scenario
  const probe = { tcpSocket: { port: 80 }, periodSeconds: 2, timeoutSeconds: 1 }
  const app = {
    ...{ name: 'app', image: 'web:1', ports: [{ containerPort: 80 }] },
    ...(probes && { readinessProbe: { ...probe, failureThreshold: 1 }, livenessProbe: probe }),
  }
  const beside = {
    one: [],
    two: [{ name: 'side', image: 'web:1' }],
    sidecar: [{ name: 'proxy', image: 'web:1' }],
  }
  return {
    ...{ replicas, hotBackups, coldBackups },
    ...(memory && {
      checkpoint: {
        interval: `${intervalMs / 1000}s`,
        copies,
        ...(containers === 'sidecar' ? { containers: ['app'] } : {}),
      },
    }),
    failover: {
      unreadySeconds,
      ...(nodeTimeoutMs === undefined ? { fencing: 'None' } : { nodeTimeout: `${nodeTimeoutMs}ms` }),
      grant: grants ? (announced ? 'Announced' : 'Heir') : 'None',
    },
    service: { name: 'web', perSlot: true, ports: [{ port: 80, targetPort: 80 }] },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: { terminationGracePeriodSeconds: 6, containers: [app, ...beside[containers]] },
    },
  }
}

/** @param log called with each event and its time */
export async function runRound(
  scenario: Scenario,
  log?: (at: number, what: string) => void,
  platform: Platform = modelPlatform(),
): Promise<Round> {
  const { stackTraceLimit } = Error
  // A round cancels thousands of waits, each with an error. Its stack helps only the reader of a log.
  if (log === undefined) Error.stackTraceLimit = 0
  const cluster = createCluster(platform, {
    ...{ seed: scenario.seed, nodes: scenario.nodes },
    heartbeatPort: scenario.nodeTimeoutMs === undefined ? undefined : 20_001,
    moves: scenario.moves ?? false,
  })
  const { time } = cluster
  if (log !== undefined) trace(cluster, what => log(time.now(), what))
  for (const { machine } of cluster.nodes) machine.graves = scenario.graves ?? true
  const observer = createObserver(cluster, intervalMs, platform.slack)
  const pass = async (ms: number, until?: () => boolean) => {
    const end = time.now() + ms
    while (time.now() < end && observer.violations.length === 0) {
      await time.runUntil(Math.min(end, time.now() + lookEveryMs))
      observer.look()
      if (until?.()) return
    }
  }
  /** Returns a test that is true once everything has been as wanted for a while. */
  const isWell = (faults: () => readonly string[] = observer.unserved) => {
    let since: number | undefined
    return () => {
      if (faults().length > 0) since = undefined
      else since ??= time.now()
      return since !== undefined && time.now() - since >= wellMs
    }
  }
  const fates = followMoves(cluster)
  for (const each of scenario.onPhase ?? [])
    onPhase(cluster, each, () => {
      log?.(time.now(), JSON.stringify(each.command))
      carryOut(cluster, each.command)
    })
  try {
    cluster.createSet(specOf(scenario), scenario.numbered)
    cluster.startOperator(0)
    cluster.startOperator(1)
    await pass(settleMs * platform.slack, isWell())
    for (const { afterMs, command } of scenario.steps) {
      await pass(afterMs)
      if (observer.violations.length > 0) break
      log?.(time.now(), JSON.stringify(command))
      carryOut(cluster, command)
    }
    if (scenario.onPhase !== undefined) await pass(moveLimitMs, () => openMoves(cluster).length === 0)
    await pass(lingerMs)
    heal(cluster)
    // A primary that is not saved any more still needs some time to be noticed.
    await pass(
      (recoverMs + (scenario.moves ? movesMs : 0)) * platform.slack,
      isWell(() => [...observer.unserved(), ...observer.unsaved(), ...observer.unmoved()]),
    )
    if (observer.violations.length === 0) observer.atEnd()
    return {
      violations: observer.violations,
      virtualMs: time.now(),
      thaws: cluster.thaws.length,
      moves: observer.moves(),
      fates: fates(),
    }
  } finally {
    await cluster.end()
    Error.stackTraceLimit = stackTraceLimit
  }
}
