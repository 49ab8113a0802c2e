import { CheckpointError } from '../errors.ts'
import { readSingle } from './image-file.ts'
import { statsEntry } from './messages.ts'

/** CRIU's measurements of a dump. Times in microseconds. */
export interface DumpStats {
  /** Time until all tasks were stopped. */
  readonly freezing: number
  /** Time during which CRIU kept the tasks stopped. */
  readonly frozen: number
  readonly memoryDump: number
  readonly memoryWrite: number
  readonly pagesScanned: number
  readonly pagesWritten: number
  readonly sharedPagesWritten: number
}

/** CRIU's measurements of a restore. Times in microseconds. */
export interface RestoreStats {
  readonly forking: number
  readonly restore: number
  readonly pagesRestored: number
}

/**
 * Reads `stats-dump` or `stats-restore`, which CRIU writes to its work directory.
 * @throws CheckpointError BadImage
 */
export async function readStats(dir: string, kind: 'dump'): Promise<DumpStats>
export async function readStats(dir: string, kind: 'restore'): Promise<RestoreStats>
export async function readStats(dir: string, kind: 'dump' | 'restore'): Promise<DumpStats | RestoreStats> {
  const name = `stats-${kind}`
  const { dump, restore } = await readSingle(dir, name, 'stats', statsEntry)
  if (kind === 'dump' && dump !== undefined)
    return {
      freezing: dump.freezingTime,
      frozen: dump.frozenTime,
      memoryDump: dump.memdumpTime,
      memoryWrite: dump.memwriteTime,
      pagesScanned: Number(dump.pagesScanned),
      pagesWritten: Number(dump.pagesWritten),
      sharedPagesWritten: Number(dump.shpagesWritten),
    }
  if (kind === 'restore' && restore !== undefined)
    return {
      forking: restore.forkingTime,
      restore: restore.restoreTime,
      pagesRestored: Number(restore.pagesRestored),
    }
  throw new CheckpointError('BadImage', `${name} has no statistics of a ${kind}`)
}
