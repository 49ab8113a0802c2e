/** Sets that keep memory, for tests of the rules: primaries, understudies and copies. */
import type { ParsedMemory } from '../../api/memory.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import { fitsMemory } from '../../slot/decide/kinds.ts'
import type { Copy, MemoryView, SlotMemory, StageView } from '../../slot/decide/memory-view.ts'
import { makeCopy, stage } from '../../slot/testing/slots.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { makePod, makeSnapshot } from './snapshots.ts'

export const parsedMemory: ParsedMemory = {
  mode: 'Frozen',
  intervalMs: 10_000,
  maxFreezePercent: 2,
  containers: ['app'],
  copies: 2,
  matchingHolders: true,
  keep: 2,
  giveUpAfterMs: undefined,
  retainMs: 600_000,
  volumeBytes: 0,
  disk: true,
  movesOnDrain: true,
}

/** @throws Error if the pod's set keeps no memory. */
export function stageOf(pod: PodView): StageView {
  if (pod.stage === undefined) throw new Error('a pod without stage')
  return pod.stage
}

export const makePrimary = (
  name: string,
  slot: number,
  over: Partial<PodView> = {},
  on: Partial<StageView> = {},
) => makePod(name, 'primary', { slot, epoch: 1, node: `n-${name}`, ...over, stage: stage(on) })

export const makeUnderstudy = (name: string, over: Partial<PodView> = {}, on: Partial<StageView> = {}) =>
  makePod(name, 'hotbackup', { node: `n-${name}`, ...over, stage: stage({ understudy: true, ...on }) })

export function makeMemorySnapshot(
  wish: Partial<Snapshot['set']>,
  pods: readonly PodView[],
  slots: readonly SlotMemory[],
  over: Partial<Snapshot> = {},
  /** Nodes that are able to keep memory. */
  nodes: readonly string[] = [],
): Snapshot {
  const memory: MemoryView = {
    slots: new Map(slots.map(slot => [slot.lease.slot, slot])),
    copies: 2,
    nodes: new Map(nodes.map(name => [name, { name, ready: true, problem: undefined }])),
  }
  const epochs = new Map<number, number>()
  const see = (slot: number | undefined, epoch: number) => {
    if (slot !== undefined) epochs.set(slot, Math.max(epochs.get(slot) ?? 0, epoch))
  }
  for (const { slot, epoch } of pods) see(slot, epoch)
  for (const { lease } of slots) see(lease.slot, lease.epoch)
  return makeSnapshot({ coldBackups: 0, memory: parsedMemory, ...wish }, pods, { memory, epochs, ...over })
}

/** The memory of a slot on a node without an understudy. */
export const coldCopy = (lease: NumberedSlotLease, node: string): Copy => {
  const copy = makeCopy(lease, makeUnderstudy(node, { node }), undefined)
  return { ...copy, report: { ...copy.report, usable: 'Cold' } }
}

/** Every holder has a copy of its slots, and the heir has it staged. */
export function staged(s: Snapshot): Snapshot {
  if (s.memory === undefined) return s
  const hot = s.pods.filter(pod => pod.kind === 'hotbackup' && pod.stage?.understudy)
  const slots = [...s.memory.slots.values()].map(slot => {
    const isHeld = s.pods.some(pod => pod.uid === slot.lease.holder.uid && !pod.stage?.died)
    // No new generation can be saved of a lost primary; existing copies remain.
    const { lease } = slot
    const fit = hot.filter(pod => fitsMemory(pod.stage?.restoreHash, lease.restoreHash))
    const word = { takenAt: '2030-01-01T00:00:00Z', ...(lease.handover !== undefined && { final: true }) }
    const spare = [...(s.memory?.nodes.keys() ?? [])].filter(node => lease.holders.includes(node))
    const copies = isHeld
      ? [
          ...fit
            .filter(pod => pod.node !== undefined && lease.holders.includes(pod.node))
            .map(pod => makeCopy(lease, pod, pod.uid === lease.heir?.uid ? 'Frozen' : 'Staged', word)),
          ...spare
            .map(node => coldCopy(lease, node))
            .map(copy => ({ ...copy, report: { ...copy.report, ...word } })),
        ]
      : slot.copies.filter(({ node }) => spare.includes(node) || fit.some(pod => pod.node === node))
    const stands = lease.handover !== undefined && {
      standsForSeconds: 60,
      ...(lease.handovers !== undefined && { standsForHandover: lease.handovers }),
    }
    const source = isHeld
      ? { ...keyOf(lease), role: 'source' as const, generation: 3, ...word, ...stands }
      : undefined
    return { ...slot, copies, source, sourceSeenAt: s.monotonicNow, ...(isHeld && { unasked: [] }) }
  })
  const rest = {
    monotonicNow: s.monotonicNow,
    ...templatesOf(s),
    lost: s.lost,
    ...(s.retired && { retired: s.retired }),
    ...(s.moves && { moves: s.moves }),
  }
  return makeMemorySnapshot(s.set, s.pods, slots, rest, [...s.memory.nodes.keys()])
}

const keyOf = ({ namespace, name, incarnation }: NumberedSlotLease) => ({ namespace, name, incarnation })

export const templatesOf = ({ templateHash, restoreHash, revisions }: Snapshot): Partial<Snapshot> => ({
  templateHash,
  restoreHash,
  ...(revisions && { revisions }),
})
