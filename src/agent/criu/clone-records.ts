import { readFileSync } from 'node:fs'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { slotFieldsOf, slotKeyIn } from '../../api/slot-key.ts'
import { isGone } from '../container/process.ts'
import type { Clone } from './memory-driver.ts'

/** Records which clones exist, for the next agent on this node. A reboot removes the records along with the clones. */
export interface CloneRecords {
  save(clone: Clone): Promise<void>
  load(podUid: string): Promise<Clone | undefined>
  remove(podUid: string): Promise<void>
  list(): Promise<readonly string[]>
}

/** UIDs come from the API server; this directory contains no other names. */
const uidPattern = /^[A-Za-z0-9-]{1,64}$/

export function createCloneRecords(directory: string): CloneRecords {
  const pathOf = (podUid: string) => {
    if (!uidPattern.test(podUid)) throw new RangeError(`not a UID: ${JSON.stringify(podUid)}`)
    return join(directory, `${podUid}.json`)
  }
  return {
    async save(clone) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      const path = pathOf(clone.podUid)
      // A reader sees the old record or the new one, also the next agent after a crash here.
      await writeFile(`${path}.tmp`, JSON.stringify({ ...clone, slot: slotFieldsOf(clone.slot) }), {
        mode: 0o600,
      })
      await rename(`${path}.tmp`, path)
    },
    async load(podUid) {
      try {
        // At once: a takeover waits for it, and each step of an asynchronous read would wait for a processor.
        const clone = JSON.parse(readFileSync(pathOf(podUid), 'utf8')) as Clone
        const slot = slotKeyIn(Object(clone.slot))
        return slot && { ...clone, slot }
      } catch (error) {
        // A full disk can truncate a record. The clone itself is then found and removed as a leftover.
        if (isGone(error) || error instanceof SyntaxError) return undefined
        throw error
      }
    },
    async remove(podUid) {
      await rm(pathOf(podUid), { force: true })
    },
    async list() {
      try {
        return (await readdir(directory))
          .filter(name => name.endsWith('.json'))
          .map(name => name.slice(0, -'.json'.length))
      } catch (error) {
        if (isGone(error)) return []
        throw error
      }
    },
  }
}
