/** The grants that this agent has used, or agreed to: see docs/adr/0129-heir-grant.md. */
import type { SlotKey } from '../../api/slot-key.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import type { GrantRecord, GrantsView } from '../observe/snapshot.ts'

/** Keeps records as long as the node runs, as the processes that follow from them do. */
export interface GrantFiles {
  /** Those that an earlier agent of this node has left. */
  readonly left: readonly GrantRecord[]
  /** Resolves once the record outlives this process. */
  save(record: GrantRecord): Promise<void>
  remove(slot: SlotKey): Promise<void>
}

export interface Grants {
  /** Always the same object; it shows the present. */
  readonly view: GrantsView
  /** This agent has seen the processes of the primary run: no agent has told of its death before. */
  isAlive(lease: SlotLease): void
  /** Notes it, and resolves once it outlives this process. @throws Error: nothing is noted. */
  write(record: GrantRecord): Promise<void>
  /** Notes that the message of a prepared grant may arrive from now on. */
  sent(record: GrantRecord): void
  /** True if the agent has accepted the grant that gives this pod the slot, a short while ago. */
  isFresh(lease: SlotLease): boolean
  /** Returns the record of the accepted grant that gives this pod the slot. */
  acceptedOf(lease: SlotLease): GrantRecord | undefined
  /**
   * Forgets records of earlier epochs, by the Leases that this agent has read.
   *
   * @param epochs by slot.
   * @param isUntold true if this heir may run, and its conditions do not say yet how it is.
   */
  keepOnly(epochs: ReadonlyMap<string, number>, isUntold: (uid: string) => boolean): void
}

/**
 * For so long an accepted grant counts without an answer of the API server, ms: well below the time after which another
 * pod could be called because the node of the heir is lost.
 */
const freshMs = 20_000

export function createGrants({
  files,
  changed,
  clock,
  log,
}: {
  readonly files: GrantFiles
  readonly changed: () => void
  readonly clock: Clock
  readonly log: Pick<Log, 'warn'>
}): Grants {
  const records = new Map(files.left.map(record => [slotName(record.slot), record]))
  const alive = new Map<string, number>()
  /**
   * Monotonic ms. The age of a record of an earlier agent is unknown. This clock is stopped while the machine is suspended,
   * and the wall clock of a record may have been set since, so both have to agree.
   */
  const acceptedAt = new Map<string, number>()
  const acceptedOf = (lease: SlotLease) => {
    const record = records.get(slotName(lease))
    const isIt =
      record?.answer === 'Accepted' &&
      record.epoch + 1 === lease.epoch &&
      record.heir.uid === lease.holder.uid
    return isIt ? record : undefined
  }
  return {
    view: { records, alive },
    isAlive(lease) {
      const name = slotName(lease)
      if (alive.get(name) === lease.epoch) return
      alive.set(name, lease.epoch)
      changed()
    },
    async write(record) {
      const name = slotName(record.slot)
      const at = clock.monotonic()
      // A report that leaves meanwhile must not say that the grant is over.
      const isOpen = record.answer === 'Accepted' || record.answer === 'Prepared'
      if (isOpen) records.set(name, record.answer === 'Accepted' ? { ...record, answer: 'Unknown' } : record)
      try {
        // The next agent does not know whether the message has left.
        await files.save(record.answer === 'Prepared' ? { ...record, answer: 'Unknown' } : record)
      } catch (error) {
        if (isOpen)
          records.set(name, { ...record, answer: record.role === 'Said' ? 'Undelivered' : 'Refused' })
        throw error
      }
      records.set(name, record)
      if (record.answer === 'Accepted') acceptedAt.set(name, at)
      changed()
    },
    sent(record) {
      records.set(slotName(record.slot), record)
      changed()
    },
    isFresh(lease) {
      const [record, at] = [acceptedOf(lease), acceptedAt.get(slotName(lease))]
      if (record === undefined || at === undefined) return false
      const byWall = clock.now() - record.at
      return clock.monotonic() - at < freshMs && byWall >= 0 && byWall < freshMs
    },
    acceptedOf,
    keepOnly(epochs, isUntold) {
      // The operator needs the word of both nodes in the next epoch, too. Their records give no pod a slot any more then.
      const isOld = (name: string, epoch: number) => (epochs.get(name) ?? Number.NaN) - epoch > 1
      for (const [name, epoch] of alive) if (!epochs.has(name) || isOld(name, epoch)) alive.delete(name)
      for (const [name, record] of records) {
        const isOpen = record.role === 'Said' || (record.answer === 'Accepted' && isUntold(record.heir.uid))
        const isKept = isOpen ? !isOld(name, record.epoch) : epochs.get(name) === record.epoch
        if (epochs.has(name) && isKept) continue
        records.delete(name)
        acceptedAt.delete(name)
        // The word of this node changes.
        changed()
        files
          .remove(record.slot)
          .catch((error: unknown) =>
            log.warn({ err: error, slot: name }, 'cannot remove the record of a grant'),
          )
      }
    },
  }
}
