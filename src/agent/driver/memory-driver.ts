import type { SlotKey } from '../../api/slot-lease.ts'
import type { ContainerImage, Manifest } from '../../checkpoint/manifest.ts'
import type { Stored } from '../../checkpoint/store.ts'
import type { ContainerName, LocatedContainer } from '../discover/container.ts'
import type { ProcessRef } from '../sentinel.ts'

export interface ContainerTarget extends ContainerName {
  /** Of the pod's status: what it really runs. */
  readonly imageId: string
}

export interface PodTarget {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly ip: string
  /** Those whose memory is kept. */
  readonly containers: readonly ContainerTarget[]
  /** Its containers run the app below `hold` and not as their first process. */
  readonly promoted: boolean
}

export interface LocatedAppContainer extends LocatedContainer, ContainerTarget {
  /** What is dumped and whose death counts: PID 1, or the app below `hold`. Absent: `hold` has none. */
  readonly app: ProcessRef | undefined
}

export interface LocatedPod {
  readonly pod: PodTarget
  readonly containers: readonly LocatedAppContainer[]
}

export interface DumpOptions {
  /** From the stop on; past it everything is continued and nothing is kept. */
  readonly deadlineMs: number
  /** What the dump before made: as much room is made before the stop. */
  readonly before?: Pick<Manifest, 'files'> | undefined
  /**
   * No file gets larger than so many bytes. Default: any size. With it a dump that is aborted ends at its next write, in the
   * middle of what CRIU does, too.
   */
  readonly roomBytes?: number | undefined
  /** Called when the pod stands still. */
  readonly onStopped?: () => void
  readonly signal: AbortSignal
}

/** What a manifest says of a dump; the rest is the caller's. */
export interface DumpResult {
  /** RFC 3339: the stop. */
  readonly takenAt: string
  readonly frozenSeconds: number
  readonly skewSeconds: number
  readonly criu: string
  readonly kernel: string
  readonly architecture: string
  readonly cpuFeatures?: readonly string[]
  readonly containers: readonly ContainerImage[]
  readonly volumes: readonly string[]
}

export interface RestoreOptions {
  readonly deadlineMs: number
  readonly signal: AbortSignal
  /**
   * `Large`: pages of containers that have many of them come later, while it runs already; `Always`: of all containers;
   * absent: everything is there at once. Where that fails everything is brought back at once, too.
   */
  readonly lazily?: 'Large' | 'Always'
}

/** Brings pages of a container. */
export interface PageServer {
  readonly container: string
  /** Lives as long as it does. */
  readonly server: ProcessRef
  /** Where it says how it has ended. */
  readonly work: string
}

/** What has not arrived yet of a clone. */
export interface PagesToCome {
  readonly servers: readonly PageServer[]
  /** With everything they need; nobody else's. */
  readonly directory: string
}

export interface ClonedContainer {
  readonly name: string
  /** First process of the container. */
  readonly hold: ProcessRef
  /** Root of the restored tree, seen from the host and from `hold`. */
  readonly app: ProcessRef
  readonly pidBelowHold: number
}

export interface Clone {
  readonly podUid: string
  readonly slot: SlotKey
  readonly generation: number
  readonly epoch: number
  readonly containers: readonly ClonedContainer[]
  /** `Thawed`: it runs and `hold` has adopted it. */
  readonly stage: 'Frozen' | 'Thawed'
  /** Absent: everything is there. See `settle`. */
  readonly pages?: PagesToCome
}

/** Everything that touches memory of pods. One operation per container at a time is the caller's duty. */
export interface MemoryDriver {
  /**
   * Finds the processes of a pod.
   *
   * @throws AgentError NotRunning.
   */
  locate(pod: PodTarget, signal: AbortSignal): Promise<LocatedPod>
  /**
   * Saves memory, writable layers, emptyDirs and /dev/shm of all containers as of one stop into the directory. Whatever
   * happens the pod goes on: here, and in the sentinel when this process ends.
   *
   * @throws AgentError DumpFailed, DumpVoid, DumpExpired, LayerFailed, StopFailed, ProcessGone, PagesComing.
   */
  dump(pod: LocatedPod, directory: string, options: DumpOptions): Promise<DumpResult>
  /**
   * Brings a generation back in an understudy, stopped and not adopted: `hold` still has no app.
   *
   * @throws AgentError CredentialsExceed, RestoreFailed, RestoreExpired, LayerFailed; nothing of it is left then.
   */
  restore(pod: LocatedPod, from: Stored, options: RestoreOptions): Promise<Clone>
  /**
   * Lets it run and has `hold` adopt it.
   *
   * @throws AgentError CloneLost, ThawFailed.
   */
  thaw(clone: Clone): Promise<Clone>
  /**
   * Waits until all pages of a clone are there. From then on it hangs on nothing but itself, and can be saved.
   *
   * @returns the same without `pages`.
   * @throws AgentError PagesLost: they will not come, and it was ended; CloneLost: it has ended by itself; the signal's reason.
   */
  settle(clone: Clone, signal: AbortSignal): Promise<Clone>
  /** Ends it and leaves `hold` as it was. A clone that is gone is fine. */
  discard(clone: Clone): Promise<void>
  /** What a restore has left in this pod, also when an earlier agent did it; undefined: none that lives. */
  clonesOf(pod: LocatedPod): Promise<Clone | undefined>
}
