/** A binary heap whose items know their place, so that any of them can be moved or removed in O(log n). */

/** The heap writes `place`; the owner of an item only initialises it, to -1. */
export interface HeapItem {
  place: number
}

export interface Heap<T extends HeapItem> {
  readonly size: number
  /** The smallest item. */
  peek(): T | undefined
  push(item: T): void
  /** Removes and returns the smallest item. */
  pop(): T | undefined
  /** Removes this item; it must be in this heap. */
  remove(item: T): void
  /** Moves this item, whose order has changed, to its new place. */
  moved(item: T): void
}

/** @param before strict total order: true when `a` comes out before `b`. */
export function createHeap<T extends HeapItem>(before: (a: T, b: T) => boolean): Heap<T> {
  const items: T[] = []

  const put = (item: T, place: number) => {
    items[place] = item
    item.place = place
  }

  const rise = (item: T) => {
    let place = item.place
    while (place > 0) {
      const parent = (place - 1) >> 1
      const above = items[parent] as T
      if (!before(item, above)) break
      put(above, place)
      place = parent
    }
    put(item, place)
  }

  const sink = (item: T) => {
    let place = item.place
    for (;;) {
      let child = 2 * place + 1
      if (child >= items.length) break
      if (child + 1 < items.length && before(items[child + 1] as T, items[child] as T)) child++
      const below = items[child] as T
      if (!before(below, item)) break
      put(below, place)
      place = child
    }
    put(item, place)
  }

  const remove = (item: T) => {
    const last = items.pop() as T
    if (last !== item) {
      put(last, item.place)
      rise(last)
      sink(last)
    }
    item.place = -1
  }

  return {
    get size() {
      return items.length
    },
    peek: () => items[0],
    push(item) {
      item.place = items.length
      items.push(item)
      rise(item)
    },
    pop() {
      const first = items[0]
      if (first) remove(first)
      return first
    },
    remove,
    moved(item) {
      rise(item)
      sink(item)
    },
  }
}
