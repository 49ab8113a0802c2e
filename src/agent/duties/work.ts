/** What the performance of duties has at hand. */
import type { SlotKey, SlotLease } from '../../api/slot-lease.ts'
import type { Manifest } from '../../checkpoint/manifest.ts'
import type { GenerationStore, Stored } from '../../checkpoint/store.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import type { PodCondition } from '../conditions.ts'
import type { LocatedPod, MemoryDriver } from '../driver/memory-driver.ts'
import type { Gates } from '../gates.ts'
import type { CommandRunner } from '../hold-command.ts'
import type { Inquiry } from '../inquiry.ts'
import type { AgentMetrics } from '../metrics.ts'
import type { Obstacle } from '../obstacles/obstacle.ts'
import type { PeerClient } from '../peers/client.ts'
import type { Probe } from '../probe/probe.ts'
import type { SentinelClient } from '../sentinel.ts'
import type { Arrivals } from './arrivals.ts'
import type { Deaths } from './deaths.ts'
import type { HandoverPauses } from './handover-pauses.ts'
import type { News } from './news.ts'
import type { Paces } from './paces.ts'
import type { Partings } from './partings.ts'
import type { Progress } from './progress.ts'
import type { Proven } from './proven.ts'
import type { MemorySettings, PodView } from './snapshot.ts'
import type { Understudies } from './understudies.ts'
import type { DraftBytes } from './watched-draft.ts'

export interface Work {
  readonly node: string
  readonly driver: MemoryDriver
  readonly sentinel: Pick<
    SentinelClient,
    | 'watch'
    | 'unwatch'
    | 'grave'
    | 'bury'
    | 'exhume'
    | 'treeKill'
    | 'watches'
    | 'stop'
    | 'keep'
    | 'isDone'
    | 'continue'
  >
  readonly inquiry: Inquiry
  readonly store: GenerationStore
  readonly peers: Pick<PeerClient, 'pull'>
  readonly understudies: Understudies
  /** Says in the manifest of what is saved here that this node has saved it. */
  readonly sign?: (manifest: Manifest) => Manifest
  /** Memory that comes later, while its app runs already. */
  readonly arrivals: Arrivals
  /** Connections that came here by a dead primary. */
  readonly partings: Partings
  readonly gates: Gates
  readonly proven: Proven
  readonly progress: Progress
  readonly handoverPauses: Pick<HandoverPauses, 'begin'>
  readonly paces: Pick<Paces, 'of'>
  readonly deaths: Deaths
  /** Writes a condition of a pod; false: the pod is gone. */
  readonly patch: (pod: PodView, condition: PodCondition, signal?: AbortSignal) => Promise<boolean>
  /** The pod as it is now. */
  readonly podOf: (uid: string) => PodView | undefined
  /** The slot, by its name, that this pod is to hold by the Lease as it is now. */
  readonly slotHeldBy: (uid: string) => string | undefined
  /** Whether this primary is to be ended at once. */
  readonly isToEnd: (uid: string) => boolean
  /** Whether somebody else could go on with this pod's memory; see `Deaths`. */
  readonly matters: (pod: PodView) => boolean
  /** Told for the name of a slot when this node has another generation of it. */
  readonly generations: News
  /** What a set (`namespace/name`) asks for as it is now; undefined: it keeps no memory. */
  readonly settingsOf: (set: string) => MemorySettings | undefined
  /** Whether another of the slot's holders says that it has this generation, or a newer one. */
  readonly isKeptElsewhere: (lease: SlotLease, generation: number) => boolean
  /** Told for the uid of a pod when what its checkpoints depend on has changed: a request, its readiness, its set. */
  readonly requests: News
  /** A new generation is here: peers that wait for it are told, too. */
  readonly announce: (slot: SlotKey) => void
  /** Keeps probes of this pod from counting until the function returned is called. */
  readonly suspendProbes: (uid: string) => () => void
  readonly onProber: (uid: string, suspend: (() => () => void) | undefined) => void
  readonly probe?: Probe
  /** What layers, emptyDirs and /dev/shm of a pod have together now, bytes; counted up to a limit. */
  readonly measureVolumes?: (pod: LocatedPod, upTo: number, signal: AbortSignal) => Promise<number>
  /** What a draft takes up so far. Default: as its files say. */
  readonly draftBytes?: (directory: string) => Promise<DraftBytes>
  /** What the processes of a pod have in memory now, bytes: so much room is set aside for a first dump. */
  readonly measureMemory?: (pod: LocatedPod, signal: AbortSignal) => Promise<number>
  /** Generations of a slot that only the disk has, brought back one by one. */
  readonly fromDisk?: (lease: SlotLease, signal: AbortSignal) => AsyncIterable<Stored>
  /** Runs a command of a template in a container on stage, with the container's rights. */
  readonly runCommand: CommandRunner
  /** What a pod has that cannot be saved. */
  readonly obstacles: (pod: LocatedPod, signal: AbortSignal) => Promise<readonly Obstacle[]>
  /** A person should hear of it. */
  readonly event: (
    pod: PodView,
    type: 'Normal' | 'Warning',
    reason: string,
    action: string,
    note: string,
  ) => void
  readonly metrics: AgentMetrics
  readonly clock: Clock
  readonly log: Log
}
