import { createHash } from 'node:crypto'
import { renameSync, writeFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { SlotKey } from '../../api/slot-key.ts'
import { formatSlotKey, slotKeyIn } from '../../api/slot-key.ts'
import { objectIn } from '../../api/unknown.ts'
import type { GrantRecord } from '../observe/snapshot.ts'
import type { GrantFiles } from './grants.ts'

/**
 * Opens the records of grants in a directory of volatile files. A reboot removes them along with the processes that
 * followed from them.
 *
 * @throws Error if the directory cannot be read.
 */
export async function openGrantFiles(directory: string): Promise<GrantFiles> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const names = (await readdir(directory)).filter(name => name.endsWith('.json'))
  const texts = await Promise.all(names.map(name => readFile(join(directory, name), 'utf8')))
  const pathOf = (slot: SlotKey) =>
    join(
      directory,
      `${createHash('sha256')
        .update(formatSlotKey(slot) ?? '')
        .digest('hex')}.json`,
    )
  return {
    left: texts.flatMap(text => parse(text) ?? []),
    async save(record) {
      const path = pathOf(record.slot)
      // At once: each step of an asynchronous write would wait for a processor, which is busy right after a death. A reboot
      // removes the file, so it need not reach a disk.
      writeFileSync(`${path}.tmp`, JSON.stringify(toFile(record)), { mode: 0o600 })
      // A reader sees the old record or the new one, also the next agent after a crash here.
      renameSync(`${path}.tmp`, path)
    },
    remove: slot => rm(pathOf(slot), { force: true }),
  }
}

/** An earlier version would use an announced grant untold, so it is to know no such record. */
const announced = 'Announced'

const toFile = (record: GrantRecord): object =>
  record.isAnnounced && record.answer === 'Accepted' ? { ...record, answer: announced } : record

/** Only this agent, and earlier ones, write here; but a version after this one may have written something else. */
function parse(text: string): GrantRecord | undefined {
  try {
    const {
      slot: given,
      epoch,
      number,
      role,
      answer,
      heir,
      atLeast,
      isAnnounced,
      at,
    } = objectIn(JSON.parse(text))
    const slot = slotKeyIn(objectIn(given))
    const { name, uid, node, ip } = objectIn(heir)
    if (slot === undefined || typeof epoch !== 'number' || typeof number !== 'number') return undefined
    if (role !== 'Said' && role !== 'Asked') return undefined
    const said = answers.find(each => each === (answer === announced ? 'Accepted' : answer))
    if (said === undefined || typeof name !== 'string' || typeof uid !== 'string') return undefined
    if (typeof node !== 'string' || typeof at !== 'number') return undefined
    const least = objectIn(atLeast)
    const { epoch: of, generation, takenAt } = least
    const areCounts = typeof of === 'number' && typeof generation === 'number' && typeof takenAt === 'number'
    return {
      ...{ slot, epoch, number, role, answer: said, at },
      heir: { name, uid, node, ip: typeof ip === 'string' ? ip : undefined },
      ...(isAnnounced === true && { isAnnounced }),
      ...(areCounts && { atLeast: { epoch: of, generation, takenAt } }),
    }
  } catch (error) {
    // A full disk can truncate a record that was not complete.
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

const answers = ['Accepted', 'Refused', 'Unknown', 'Undelivered'] as const
