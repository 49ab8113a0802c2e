/** Compares the pods before and after an operation with the story's expectation. Pure. */
import type { PodKind } from '../src/api/labels.ts'
import { type PodRow, staying } from './picture.ts'

type Counts = Partial<Record<PodKind, number>>

/** Counts of pods, by the change that they went through. Absent means none. */
export interface Changes {
  readonly created?: Counts
  readonly deleted?: Counts
  readonly hotToPrimary?: number
  readonly coldToPrimary?: number
  readonly coldToHot?: number
}

const rankOf: Readonly<Record<PodKind, number>> = { coldbackup: 0, hotbackup: 1, primary: 2 }

export function changesBetween(before: readonly PodRow[], after: readonly PodRow[]): Changes {
  const [old, now] = [staying(before), staying(after)]
  const was = new Map(old.map(row => [row.uid, row.kind]))
  const is = new Set(now.map(row => row.uid))
  const converted = (from: PodKind, to: PodKind) =>
    now.filter(row => row.kind === to && was.get(row.uid) === from).length
  return {
    created: countKinds(now.filter(row => !was.has(row.uid))),
    deleted: countKinds(old.filter(row => !is.has(row.uid))),
    hotToPrimary: converted('hotbackup', 'primary'),
    coldToPrimary: converted('coldbackup', 'primary'),
    coldToHot: converted('coldbackup', 'hotbackup'),
  }
}

/** Describes every deviation from the expectation; empty if there is none. */
export function deviations(
  set: string,
  before: readonly PodRow[],
  after: readonly PodRow[],
  expected: Changes,
): string[] {
  const found = changesBetween(before, after)
  const wrong: string[] = []
  const differ = (what: string, is = 0, should = 0) => {
    if (is !== should) wrong.push(`${what}: ${is} instead of ${should}`)
  }
  for (const kind of ['primary', 'hotbackup', 'coldbackup'] as const) {
    differ(`${kind} created`, found.created?.[kind], expected.created?.[kind])
    differ(`${kind} deleted`, found.deleted?.[kind], expected.deleted?.[kind])
  }
  differ('hot backup to primary', found.hotToPrimary, expected.hotToPrimary)
  differ('cold backup to primary', found.coldToPrimary, expected.coldToPrimary)
  differ('cold backup to hot backup', found.coldToHot, expected.coldToHot)

  const was = new Map(staying(before).map(row => [row.name, row]))
  for (const row of staying(after)) {
    if (!new RegExp(`^${set}-[0-9a-f]{12}$`).test(row.name))
      wrong.push(`${row.name} is not of the form <set>-<12 hex>`)
    if (row.restarts !== 0) wrong.push(`${row.name} was restarted ${row.restarts} times`)
    const earlier = was.get(row.name)
    if (earlier === undefined) continue
    if (row.uid !== earlier.uid) wrong.push(`${row.name} was recreated`)
    if (row.node !== earlier.node) wrong.push(`${row.name} moved from ${earlier.node} to ${row.node}`)
    if (row.ip !== earlier.ip) wrong.push(`${row.name} changed its address from ${earlier.ip} to ${row.ip}`)
    if (rankOf[row.kind] < rankOf[earlier.kind]) wrong.push(`${row.name} was demoted to ${row.kind}`)
  }
  return wrong
}

/** Checks that after a failure the successor holds the lost primary's slot, at a later epoch. */
export function slotDeviations(lost: PodRow, after: readonly PodRow[]): string[] {
  const holders = staying(after).filter(row => row.kind === 'primary' && row.slot === lost.slot)
  const [holder] = holders
  if (holder === undefined || holders.length > 1)
    return [`slot ${lost.slot} has ${holders.length} primaries instead of 1`]
  return Number(holder.epoch) > Number(lost.epoch)
    ? []
    : [
        `slot ${lost.slot}: epoch ${holder.epoch} of ${holder.name} is not above ${lost.epoch} of ${lost.name}`,
      ]
}

/** Those of the paper. Columns of ours may follow. */
const columns = ['NAME', 'NAMESPACE', 'REPLICAS', 'HOTBACKUPS', 'COLDBACKUPS', 'AGE']

/** Compares the output of `kubectl get bps NAME` with the paper's. */
export function listingDeviations(
  output: string,
  set: string,
  namespace: string,
  wish: Readonly<Record<PodKind, number>>,
): string[] {
  const [header = '', row = ''] = output.trim().split('\n')
  const cells = row.split(/\s+/)
  const expected = [set, namespace, ...[wish.primary, wish.hotbackup, wish.coldbackup].map(n => `${n}/${n}`)]
  const wrong: string[] = []
  if (header.split(/\s+/).slice(0, columns.length).join() !== columns.join())
    wrong.push(`kubectl get bps has the columns ${header}`)
  if (cells.slice(0, 5).join() !== expected.join()) wrong.push(`kubectl get bps prints ${row}`)
  return wrong
}

function countKinds(rows: readonly PodRow[]): Counts {
  const counts: Counts = {}
  for (const { kind } of rows) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}
