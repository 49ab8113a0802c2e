import type { PullFailure, TransferredState } from '../../checkpoint/http/transfer.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import type { Random } from '../../kube/random.ts'
import type { WriteBehind } from '../../state-store/write-behind.ts'
import type { Holder, PulledView } from '../decide/pulled-view.ts'
import type { Reservation, StateBudget } from './budget.ts'
import { parseStored, type StoredState, storedBytes, storedMeta } from './stored.ts'

/** The state of one slot. Generations belong to a incarnation: a slot number that is reused begins a new incarnation. */
export interface SavedState extends StoredState {
  readonly bytes: Buffer
  /** Monotonic ms at which its request began: the state is not older than that. */
  readonly takenAt: number
}

export interface PullProblem {
  readonly reason: PullFailure
  readonly why: string
}

/**
 * The states that this process has pulled, one for each slot. A successor gets the state from here. The state store
 * follows in the background and is read once, when the process becomes the leader.
 */
export interface States {
  /**
   * Loads the states of the previous operator from the store; starts that on the first call. `isHere`: the pod that the
   * state was pulled from still has it, so that its bytes need not be read. @returns false while loading, which ends
   * within two seconds, whatever the store does.
   */
  loaded(
    set: { readonly namespace: string; readonly uid: string },
    slots: readonly number[],
    isHere: (holder: Holder) => boolean,
  ): boolean
  view(setUid: string): PulledView
  get(setUid: string, slot: number): SavedState | undefined
  /**
   * Returns false if another pod has the slot by now, or a newer state has arrived.
   * @param room reservation for the state. It is kept as long as the state, or released.
   */
  commit(
    setUid: string,
    slot: number,
    holder: Holder,
    state: TransferredState,
    times: PullTimes,
    room?: Reservation,
  ): boolean
  /** A successor has taken the state and has the slot. */
  inherited(setUid: string, slot: number, holder: Holder): void
  refused(setUid: string, slot: number): void
  problem(setUid: string, slot: number): PullProblem | undefined
  failed(setUid: string, slot: number, problem: PullProblem): void
  /** The incarnation of these slots has ended; without `slots`, of all slots. */
  drop(setUid: string, slots?: Iterable<number>): void
  /** The next term starts, and no other process has led: the store has to follow again. */
  goOn(): void
  /** Another process has led since: these states may be old. */
  clear(): void
}

export interface PullTimes {
  /** Monotonic ms. */
  readonly takenAt: number
  readonly endedAt: number
  /** The generation that the last status named for this pod; numbers continue from there. */
  readonly floor: number
}

export interface StatesDeps {
  readonly store: WriteBehind
  readonly budget: StateBudget
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** States have been loaded. */
  readonly changed: (setUid: string) => void
}

/** How long the first pass of a set waits for the store, ms. Only once, and only with a durable store. */
const loadPatienceMs = 2_000
const retryMs = 50

export function createStates({ store, budget, clock, random, log, changed }: StatesDeps): States {
  const sets = new Map<string, Map<number, SavedState>>()
  const refusals = new Map<string, number>()
  const problems = new Map<string, PullProblem>()
  const loads = new Map<string, { readonly until: number; done: boolean }>()
  const rooms = new Map<string, Reservation>()
  const at = (setUid: string, slot: number) => `${setUid}/${slot}`
  const settle = (key: string, room: Reservation | undefined) => {
    rooms.get(key)?.release()
    if (room === undefined) rooms.delete(key)
    else rooms.set(key, room)
  }
  const keysOf = (setUid: string, slot: number) => ({
    meta: `understudy:${setUid}:state:${slot}:meta`,
    bytes: `understudy:${setUid}:state:${slot}:bytes`,
  })
  const put = (setUid: string, state: SavedState) => {
    const slots = sets.get(setUid) ?? new Map<number, SavedState>()
    sets.set(setUid, slots)
    const before = slots.get(state.slot)
    slots.set(state.slot, state)
    keep(setUid, state, before)
  }
  const keep = (setUid: string, state: SavedState, before?: SavedState) => {
    const keys = keysOf(setUid, state.slot)
    const current = () => sets.get(setUid)?.get(state.slot)
    store.keep(keys.meta, () => storedMeta(current()))
    // Unchanged bytes are not written again.
    if (!state.hollow && (before === undefined || before.hollow || before.digest !== state.digest))
      store.keep(keys.bytes, () => storedBytes(current()))
  }

  /** A process that has just started may not be connected yet: retries until the waiting time is over. */
  const read = async (key: string, until: number): Promise<Uint8Array | undefined> => {
    for (;;)
      try {
        return await store.store.get(key)
      } catch (error) {
        if (clock.monotonic() >= until) throw error
        await clock.sleep(retryMs)
      }
  }
  const load = async (
    { uid: setUid, namespace }: { readonly namespace: string; readonly uid: string },
    slots: readonly number[],
    isHere: (holder: Holder) => boolean,
    until: number,
  ) => {
    for (const slot of slots) {
      const keys = keysOf(setUid, slot)
      const meta = parseStored(await read(keys.meta, until))
      if (meta === undefined || meta.slot !== slot) continue
      const bytes = isHere(meta.holder) ? undefined : await read(keys.bytes, until)
      // A newer state was pulled, or the slot was dropped, in the meantime.
      if (!loads.has(setUid) || sets.get(setUid)?.has(slot)) continue
      const age = Math.max(0, clock.now() - meta.takenAtWall)
      const state = { ...meta, takenAt: clock.monotonic() - age }
      const held = bytes && storedBytes.read(bytes, meta.digest)
      const room = budget.reserve(namespace)
      if (held !== undefined && !room.take(held.length)) {
        log.warn({ slot, bytes: held.length }, 'no room for a state of an earlier operator')
        continue
      }
      settle(at(setUid, slot), room)
      // Without its bytes, it only identifies the incarnation, until the next pull.
      if (held !== undefined || isHere(meta.holder))
        put(setUid, { ...state, bytes: held ?? Buffer.alloc(0), hollow: held === undefined })
    }
  }

  return {
    loaded(set, slots, isHere) {
      const setUid = set.uid
      if (!store.store.durable) return true
      const known = loads.get(setUid)
      if (known !== undefined) return known.done || clock.monotonic() >= known.until
      const state = { until: clock.monotonic() + loadPatienceMs, done: false }
      loads.set(setUid, state)
      load(set, slots, isHere, state.until)
        .catch((error: unknown) =>
          log.warn({ err: error }, 'cannot load the pulled states of an earlier operator'),
        )
        .finally(() => {
          state.done = true
          changed(setUid)
        })
      return false
    },
    view(setUid) {
      const slots = [...(sets.get(setUid) ?? [])].flatMap(([slot, state]) =>
        state.hollow
          ? []
          : [
              [
                slot,
                {
                  incarnation: state.incarnation,
                  generation: state.generation,
                  bytes: state.bytes.length,
                  takenAt: state.takenAt,
                  holder: state.holder,
                  refusals: refusals.get(at(setUid, slot)) ?? 0,
                },
              ] as const,
            ],
      )
      return { slots: new Map(slots) }
    },
    get(setUid, slot) {
      const state = sets.get(setUid)?.get(slot)
      return state?.hollow ? undefined : state
    },
    commit(setUid, slot, holder, state, { takenAt, endedAt, floor }, room) {
      const before = sets.get(setUid)?.get(slot)
      // A slow pull, or a pull from a pod that already has a successor.
      if (before !== undefined && (takenAt < before.takenAt || holder.epoch < before.holder.epoch)) {
        room?.release()
        return false
      }
      const goesOn = before?.holder.uid === holder.uid && before.holder.restarts === holder.restarts
      const isSame = goesOn && !before.hollow && before.digest === state.digest
      if (isSame) room?.release()
      else {
        room?.keep(state.bytes.length)
        settle(at(setUid, slot), room)
      }
      put(setUid, {
        slot,
        incarnation: goesOn ? before.incarnation : Buffer.from(random.bytes(4)).toString('hex'),
        generation: (goesOn ? before.generation : floor) + 1,
        holder,
        digest: state.digest,
        contentType: state.contentType,
        bytes: isSame ? before.bytes : state.bytes,
        takenAt,
        takenAtWall: Math.round(clock.now() - (endedAt - takenAt)),
        seconds: Math.round(endedAt - takenAt) / 1000,
        hollow: false,
      })
      problems.delete(at(setUid, slot))
      refusals.delete(at(setUid, slot))
      return true
    },
    inherited(setUid, slot, holder) {
      const state = sets.get(setUid)?.get(slot)
      if (state !== undefined) put(setUid, { ...state, holder })
      refusals.delete(at(setUid, slot))
    },
    refused(setUid, slot) {
      refusals.set(at(setUid, slot), (refusals.get(at(setUid, slot)) ?? 0) + 1)
    },
    problem: (setUid, slot) => problems.get(at(setUid, slot)),
    failed: (setUid, slot, problem) => {
      problems.set(at(setUid, slot), problem)
    },
    drop(setUid, slots) {
      const present = sets.get(setUid)
      for (const slot of slots ?? [...(present?.keys() ?? [])]) {
        present?.delete(slot)
        refusals.delete(at(setUid, slot))
        problems.delete(at(setUid, slot))
        settle(at(setUid, slot), undefined)
        const keys = keysOf(setUid, slot)
        store.drop(keys.meta)
        store.drop(keys.bytes)
      }
      if (slots !== undefined) return
      sets.delete(setUid)
      loads.delete(setUid)
    },
    goOn() {
      for (const [setUid, slots] of sets) for (const state of slots.values()) keep(setUid, state)
    },
    clear() {
      for (const room of rooms.values()) room.release()
      for (const map of [sets, refusals, problems, loads, rooms]) map.clear()
    },
  }
}
