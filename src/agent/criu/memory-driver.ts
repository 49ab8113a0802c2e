import type { SlotKey } from '../../api/slot-key.ts'
import type { ContainerImage, Manifest } from '../../checkpoint/manifest.ts'
import type { Stored } from '../../checkpoint/store.ts'
import type { ContainerName, LocatedContainer } from '../container/container.ts'
import type { ProcessRef } from '../container/process.ts'

export interface ContainerTarget extends ContainerName {
  /** From the pod's status: the image that really runs. */
  readonly imageId: string
}

export interface PodTarget {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly ip: string
  /** The containers whose memory is kept. */
  readonly containers: readonly ContainerTarget[]
  /** True if the containers run the app below `hold` and not as their first process. */
  readonly promoted: boolean
}

export interface LocatedAppContainer extends LocatedContainer, ContainerTarget {
  /** The process that is dumped and whose death counts: PID 1, or the app below `hold`. Absent: `hold` has no app. */
  readonly app: ProcessRef | undefined
}

export interface LocatedPod {
  readonly pod: PodTarget
  readonly containers: readonly LocatedAppContainer[]
}

export interface DumpOptions {
  /** Counts from the stop. After it, the pod is resumed and the dump discarded. */
  readonly deadlineMs: number
  /** The previous dump: the driver reserves as much room before the stop. */
  readonly before?: Pick<Manifest, 'files'> | undefined
  /** The newest generation of the slot: a dump of the same pod may need only what was written since. */
  readonly base?: Pick<Stored, 'dir' | 'manifest'> | undefined
  /**
   * Lets the kernel record what the pod writes after this dump, so that the next one reads only that. Default: only if the node does
   * so for all dumps.
   */
  readonly isRecordRequested?: boolean | undefined
  /** Returns a generation whose files the dump may write over; see `Draft`. Default: there is none. */
  readonly takeSpare?: (() => Stored | undefined) | undefined
  /**
   * Most bytes of each file. Default: any size. With it, an aborted dump ends at its next write, even while CRIU has
   * changed the processes.
   */
  readonly roomBytes?: number | undefined
  /**
   * Called when all is prepared, immediately before the pod is stopped. Its rejection ends the dump. For a caller that stops the pod for
   * longer than the dump does.
   */
  readonly beforeStop?: (() => Promise<void>) | undefined
  /** Called when the pod is stopped. */
  readonly onStopped?: () => void
  readonly signal: AbortSignal
}

/** The driver's part of a manifest; the caller adds the rest. */
export interface DumpResult {
  /** RFC 3339: the time of the stop. */
  readonly takenAt: string
  readonly frozenSeconds: number
  readonly skewSeconds: number
  readonly criu: string
  readonly kernel: string
  readonly architecture: string
  readonly cpuFeatures?: readonly string[]
  readonly containers: readonly ContainerImage[]
  readonly volumes: readonly string[]
  /** The digests of the pages of files, by their paths, where they are known without reading the file. */
  readonly pageDigests?: ReadonlyMap<string, Buffer>
}

export interface RestoreOptions {
  readonly deadlineMs: number
  readonly signal: AbortSignal
  /**
   * `Large`: the pages of large containers arrive later, while the container runs already. `Always`: so for all
   * containers. Absent: full restore. If a lazy restore of `Large` fails, the driver makes a full one.
   */
  readonly lazily?: 'Large' | 'Always'
  /**
   * Clients that wait for a frozen clone of the slot, in whose place this one comes: all of them wait for this one, or
   * those of the last second. Absent: their connections end with the old clone.
   */
  readonly clients?: 'All' | 'Recent'
}

/** A process that delivers a container's pages. */
export interface PageServer {
  readonly container: string
  /** Root process of the page server; lives as long as the server. */
  readonly server: ProcessRef
  /** Directory in which it records how it ended. */
  readonly work: string
}

/** Pages of a clone that have not arrived yet. */
export interface PagesToCome {
  readonly servers: readonly PageServer[]
  /** Contains all files that the servers need, and no others. */
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
  /** `Thawed`: the clone runs and `hold` has adopted it. */
  readonly stage: 'Frozen' | 'Thawed'
  /** Absent: all pages have arrived. See `settle`. */
  readonly pages?: PagesToCome
}

/** All operations on pods' memory. The caller must run at most one operation per container at a time. */
export interface MemoryDriver {
  /**
   * Finds the processes of a pod.
   *
   * @throws AgentError NotRunning.
   */
  locate(pod: PodTarget, signal: AbortSignal): Promise<LocatedPod>
  /** Returns the first process of each container that runs in a pod, also if nothing but its uid is known. */
  firstProcesses(podUid: string): Promise<readonly ProcessRef[]>
  /**
   * Saves memory, writable layers, emptyDirs and /dev/shm of all containers into the directory, as of one stop. The pod
   * is resumed in every case: by the driver, or by the sentinel if this process ends.
   *
   * @throws AgentError DumpFailed, DumpVoid, DumpExpired, LayerFailed, StopFailed, ProcessGone, PagesComing.
   */
  dump(pod: LocatedPod, directory: string, options: DumpOptions): Promise<DumpResult>
  /** True if a dump of this pod with `isRecordRequested` could make the next one shorter, and no other dump does. */
  recordsOnRequest(podUid: string): boolean
  /** Ends what a dump with `isRecordRequested` has begun. */
  endRecord(podUid: string): Promise<void>
  /**
   * Restores a generation in an understudy, stopped and not adopted: `hold` still has no app. Takes the place of a
   * frozen clone.
   *
   * @throws AgentError CredentialsExceed, RestoreFailed, RestoreExpired, LayerFailed; nothing of the clone is left
   *   then.
   */
  restore(pod: LocatedPod, from: Stored, options: RestoreOptions): Promise<Clone>
  /**
   * Lets the clone run and has `hold` adopt it.
   *
   * @throws AgentError CloneLost, ThawFailed.
   */
  thaw(clone: Clone): Promise<Clone>
  /**
   * Waits until all pages of a clone have arrived. From then on, the clone depends on no page server and can be saved.
   *
   * @returns the same clone without `pages`.
   * @throws AgentError PagesLost: pages are lost, and the clone was killed; CloneLost: it ended by itself; the signal's
   *   reason.
   */
  settle(clone: Clone, signal: AbortSignal): Promise<Clone>
  /** Kills the clone and leaves `hold` as before. Succeeds if the clone is gone. */
  discard(clone: Clone): Promise<void>
  /** Returns the living clone in this pod, also if an earlier agent restored it; undefined if there is none. */
  clonesOf(pod: LocatedPod): Promise<Clone | undefined>
}
