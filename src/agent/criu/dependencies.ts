import type { CopyPages } from '../../checkpoint/page-program.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Machine } from '../../slot/decide/machine-fit.ts'
import type { ProcFs } from '../container/process.ts'
import type { SentinelClient } from '../sentinel/client.ts'
import type { CloneRecords } from './clone-records.ts'
import type { Copies } from './copies.ts'
import type { Files } from './files.ts'
import type { KeepListening } from './keep-listening.ts'
import type { Tracking } from './tracking.ts'

/** Dependencies of the driver's operations. */
export interface DriverDependencies {
  readonly sentinel: SentinelClient
  readonly fs: ProcFs
  readonly clock: Clock
  readonly log: { warn(fields: object, message: string): void }
  /** Directory on the host with `criu/`, `nsrun` and `rootfs`; outlives this process. */
  readonly programs: string
  /** For files that belong to no generation; on the filesystem of the generations, whose files are linked into it. */
  readonly workDirectory: string
  readonly records: CloneRecords
  readonly files: Files
  /** Accounts for the room of the copies that restores work with; absent: unlimited. */
  readonly copies?: Copies
  /** Absent: connections to a frozen clone end when another one takes its place. */
  readonly keepListening?: KeepListening
  /** Version of the CRIU in `programs`. */
  readonly criuVersion: string
  /** Tells whether this node can restore large memory lazily; absent: the driver tries it. */
  readonly lazily?: {
    isPossible(): boolean
    /** Called when a lazy restore failed and a full restore succeeded. */
    failed(error: unknown): void
  }
  /** Absent: all dumps are full. */
  readonly tracking?: Tracking
  readonly copyPages?: CopyPages | undefined
  /** Properties of the machine that memory depends on, for dumps and restores; absent: not compared. */
  readonly machine?: Machine
}
