/** Items that wait for their time, with one sleep at a time: for the item that is due first. */
import type { Clock } from './clock.ts'
import { createHeap, type HeapItem } from './heap.ts'

export interface DelayedItem extends HeapItem {
  /** Monotonic milliseconds at which the item is due. */
  at: number
  /** Order of arrival, for items that are due together. */
  order: number
}

export interface Delayed<T extends DelayedItem> {
  readonly size: number
  push(item: T): void
  /** Removes this item; it must be one of these. */
  remove(item: T): void
  /** Notes that this item is due earlier now. */
  moved(item: T): void
  /** Ends the sleep. The items stay, and none becomes due any more. */
  cancel(): void
}

/** @param onDue called with all items that are due at this time, in monotonic milliseconds. They are removed. */
export function createDelayed<T extends DelayedItem>(
  clock: Clock,
  onDue: (items: readonly T[], now: number) => void,
): Delayed<T> {
  const waiting = createHeap<T>((a, b) => (a.at === b.at ? a.order < b.order : a.at < b.at))
  let alarm: { readonly at: number; readonly cancel: AbortController } | undefined

  const ring = () => {
    alarm = undefined
    const now = clock.monotonic()
    const due: T[] = []
    for (let next = waiting.peek(); next && next.at <= now; next = waiting.peek()) {
      waiting.pop()
      due.push(next)
    }
    onDue(due, now)
    setAlarm()
  }

  const setAlarm = () => {
    const next = waiting.peek()
    if (!next || (alarm && alarm.at <= next.at)) return
    alarm?.cancel.abort()
    const cancel = new AbortController()
    alarm = { at: next.at, cancel }
    clock.sleep(next.at - clock.monotonic(), cancel.signal).then(ring, () => {
      // Cancelled, or replaced by an earlier alarm: nothing is due for this one.
    })
  }

  return {
    get size() {
      return waiting.size
    },
    push(item) {
      waiting.push(item)
      setAlarm()
    },
    remove: waiting.remove,
    moved(item) {
      waiting.moved(item)
      setAlarm()
    },
    cancel() {
      alarm?.cancel.abort()
      alarm = undefined
    },
  }
}
