import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import type { AgentErrorCode } from '../../../api/agent-errors.ts'
import type { ProcessRef } from '../../container/process.ts'
import type { Clone } from '../../criu/memory-driver.ts'
import type { GrantRecord } from '../../observe/snapshot.ts'
import type { Obstacle } from '../../preflight/obstacles/obstacle.ts'
import type { GuardRequest, HeartbeatPeer, VoteRequest } from '../../sentinel/client.ts'
import type { Predecessor } from '../../tasks/inherited-connections.ts'

/** The memory and the processes of a node's pods, its redirects and stops. They survive agents. */
export interface FakeMemory {
  /** Words of the running apps, by uid of the pod. */
  readonly running: Map<string, string>
  readonly clones: Map<string, { clone: Clone; word: string }>
  readonly watches: Map<string, FakeWatch>
  /** Answers of gates, by uid of the pod. */
  readonly gates: Map<string, (line: string) => string>
  /** Pids of process trees that were killed, in order. */
  readonly kills: number[]
  /** The kernel's work after a kill, for which the sentinel waits. */
  whileKilled: () => Promise<void> | void
  /** Names of watches whose redirects were closed by a command, in order. */
  readonly burials: string[]
  /** Addresses whose redirected clients a pod refuses, by the pid of its first process. */
  readonly keptOut: Map<number, readonly string[]>
  /** Pods whose connections by way of a predecessor are to be ended, with that predecessor. */
  readonly parted: { readonly pod: string; readonly from: Predecessor }[]
  /** Suspensions of probes that are in effect, by uid of the pod. */
  readonly suspended: Set<{ readonly uid: string }>
  /** True while another tracer has the processes, so that they cannot be stopped. */
  refusesStops: boolean
  /** True while memory can be saved and restored here. */
  able: boolean
  /** Settles when the node's disk has been read after a reboot; the engine runs only then. */
  recalled: Promise<void> | undefined
  /** Targets of redirects that were closed at the removal of their watches; they last as long as the pods' networks. */
  readonly waysLeft: (string | undefined)[]
  /** Names of watches that still existed when the agent discarded their clone: it would count as a death. */
  readonly mourned: string[]
  /** True if the kernel has no rules for redirects. */
  noGraves: boolean
  /** True if the kernel refuses to close a redirect. */
  refusesRedirects: boolean
  readonly counts: { dumps: number; restores: number; lazyRestores: number; thaws: number; discards: number }
  /** Names of the stops in effect. */
  readonly stops: Set<string>
  /** Names of stops that outlive the agent that requested them. */
  readonly kept: Set<string>
  /** Words whose thaw fails without a fault of the app, once. */
  readonly unthawed: Set<string>
  /** Words whose restore fails, with the error code. */
  readonly broken: Map<string, AgentErrorCode>
  /** Obstacles to saving a pod, by its uid. */
  readonly obstacles: Map<string, readonly Obstacle[]>
  /** Arrivals of pages, by uid of the pod: resolves when all have arrived, rejects as the driver would. */
  readonly coming: Map<string, Promise<void>>
  readonly voters: FakeVoters
  /** Records of grants, by slot. */
  readonly grants: Map<string, GrantRecord>
  /** Metrics of the agent that was started last. */
  registry: Registry
  /** Reasons of the events about pods, in order. */
  readonly events: string[]
  /** Uids of the pods in which the driver works; two operations at once in one pod are an error. */
  readonly busy: Set<string>
  /** Whether a dump begins a record of writes only on request. */
  recordsOnRequest: boolean
  /** Uids of the pods whose writes are recorded. */
  readonly recorded: Set<string>
  /** Memory of each container in a dump; 0: the dump names no containers. */
  dumpBytes: number
  /** Total size of the layers and volumes of a pod. */
  volumeBytes: number
  /** Memory of the processes of a pod. */
  memoryBytes: number
  /** Duration of a freeze that each dump reports. */
  frozenSeconds: number
  /** Called right before a restore. */
  beforeRestore: () => void
  /** Called right before a dump stops its pod. */
  atStop: () => void
  /** Called while a pod is stopped for its dump. */
  duringDump: (uid: string) => Promise<void> | void
  /** Called when a dump has ended, before its generation is sealed. */
  beforeSeal: () => Promise<void> | void
  readonly directory: string
}

export interface FakeWatch {
  readonly process: ProcessRef
  readonly heir: string | undefined
  readonly lastsMs?: number | undefined
  readonly isClosed: boolean
  readonly died: boolean
}

/** Requests about fences, by name. */
export interface FakeVoters {
  /** False while too few voters answer. */
  answer: boolean
  /** True while the sentinel has stopped the primary already, and refuses to stop it for another reason. */
  refuseStops: boolean
  /** Uids of fenced understudies: their first processes are stopped, too. */
  readonly asleep: Set<string>
  readonly guarded: Map<string, GuardRequest>
  /** Pods that are not guarded any more, and whether their app ran then. */
  readonly unguarded: { readonly name: string; readonly isRunning: boolean; readonly isShut?: boolean }[]
  readonly peers: Map<string, HeartbeatPeer>
  readonly votes: Map<string, VoteRequest>
}

export async function createFakeMemory(): Promise<FakeMemory> {
  return {
    running: new Map(),
    clones: new Map(),
    watches: new Map(),
    gates: new Map(),
    kills: [],
    burials: [],
    keptOut: new Map(),
    parted: [],
    noGraves: false,
    refusesRedirects: false,
    able: true,
    registry: new Registry(),
    recalled: undefined,
    waysLeft: [],
    suspended: new Set(),
    refusesStops: false,
    mourned: [],
    counts: { dumps: 0, restores: 0, lazyRestores: 0, thaws: 0, discards: 0 },
    stops: new Set(),
    kept: new Set(),
    unthawed: new Set(),
    broken: new Map(),
    obstacles: new Map(),
    coming: new Map(),
    busy: new Set(),
    events: [],
    grants: new Map(),
    voters: {
      answer: true,
      refuseStops: false,
      asleep: new Set(),
      guarded: new Map(),
      unguarded: [],
      peers: new Map(),
      votes: new Map(),
    },
    recordsOnRequest: false,
    recorded: new Set(),
    dumpBytes: 0,
    volumeBytes: 0,
    memoryBytes: 0,
    frozenSeconds: 0.001,
    beforeRestore: () => undefined,
    atStop: () => undefined,
    duringDump: () => undefined,
    beforeSeal: () => undefined,
    whileKilled: () => undefined,
    directory: await mkdtemp(join(tmpdir(), 'understudy-agent-')),
  }
}

export const dispose = (memory: FakeMemory) => rm(memory.directory, { recursive: true, force: true })
