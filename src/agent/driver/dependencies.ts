import type { Clock } from '../../kube/clock.ts'
import type { Machine } from '../../succession/placement.ts'
import type { ProcFs } from '../discover/process.ts'
import type { SentinelClient } from '../sentinel.ts'
import type { Copies } from './copies.ts'
import type { Files } from './files.ts'
import type { CloneRecords } from './records.ts'

/** What the operations of the driver work with. */
export interface DriverDependencies {
  readonly sentinel: SentinelClient
  readonly fs: ProcFs
  readonly clock: Clock
  readonly log: { warn(fields: object, message: string): void }
  /** Directory with `criu/`, `enter` and `layer` on the host, outliving this process. */
  readonly programs: string
  /** For what belongs to no generation; on the filesystem of the generations, whose files are linked into it. */
  readonly workDirectory: string
  readonly records: CloneRecords
  readonly files: Files
  /** Room for what restores work with; absent: any. */
  readonly copies?: Copies
  /** Version of the CRIU in `programs`. */
  readonly criuVersion: string
  /** Whether large memory can come later on this node; absent: it is tried. */
  readonly lazily?: {
    isPossible(): boolean
    /** Told when it did not work, and all at once did. */
    failed(error: unknown): void
  }
  /** What memory that is saved here depends on, and what other memory finds here; absent: not compared. */
  readonly machine?: Machine
}
