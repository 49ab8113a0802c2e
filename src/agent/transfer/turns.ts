/**
 * Limits concurrent work of one sort (transfers, saves), in all and per node that it is for. The rest queues, in rotation
 * by namespace: a tenant with many slots delays only its own work.
 */
export interface Turns {
  /**
   * Resolves when the turn begins, with a function that ends it.
   * @throws the signal's reason, when it fires first
   */
  take(turn: Turn, signal: AbortSignal): Promise<() => void>
}

export interface Turn {
  /** The node that it is for. */
  readonly node: string
  readonly namespace: string
}

interface Waiter {
  readonly turn: Turn
  readonly start: () => void
}

export function createTurns(limits: { readonly forAll: number; readonly forEach: number }): Turns {
  const byNode = new Map<string, number>()
  const byNamespace = new Map<string, number>()
  let total = 0
  // Oldest first.
  const queue: Waiter[] = []
  /**
   * Namespaces that have turns or wait for some. A new one goes to the end, and so does one whose turn has just begun.
   */
  let order: string[] = []
  // A transfer may last for hours, so one place stays free for other namespaces.
  const forNamespace = Math.max(1, limits.forAll - 1)

  const mayStart = ({ node, namespace }: Turn) =>
    total < limits.forAll &&
    (byNode.get(node) ?? 0) < limits.forEach &&
    (byNamespace.get(namespace) ?? 0) < forNamespace

  /** Returns the oldest waiter of the namespace with the fewest turns now; among equals, namespaces rotate. */
  const next = (): Waiter | undefined => {
    let best: Waiter | undefined
    const runningOf = ({ turn }: Waiter) => byNamespace.get(turn.namespace) ?? 0
    for (const namespace of order) {
      // A waiter whose own node is busy must not block the others.
      const first = queue.find(({ turn }) => turn.namespace === namespace && mayStart(turn))
      if (first !== undefined && (best === undefined || runningOf(first) < runningOf(best))) best = first
    }
    return best
  }

  const begin = (turn: Turn): (() => void) => {
    const { node, namespace } = turn
    total += 1
    add(byNode, node, 1)
    add(byNamespace, namespace, 1)
    order = [...order.filter(each => each !== namespace), namespace]
    let over = false
    return () => {
      if (over) return
      over = true
      total -= 1
      add(byNode, node, -1)
      add(byNamespace, namespace, -1)
      tidy(namespace)
      // One end may start two turns: a waiter for this node, and a waiter for this namespace's share.
      for (let waiter = next(); waiter !== undefined; waiter = next()) {
        leave(waiter)
        waiter.start()
      }
    }
  }

  const leave = (waiter: Waiter) => {
    queue.splice(queue.indexOf(waiter), 1)
    tidy(waiter.turn.namespace)
  }
  const tidy = (namespace: string) => {
    if (!byNamespace.has(namespace) && !queue.some(({ turn }) => turn.namespace === namespace))
      order = order.filter(each => each !== namespace)
  }

  return {
    take(turn, signal) {
      if (signal.aborted) return Promise.reject(signal.reason)
      if (mayStart(turn)) return Promise.resolve(begin(turn))
      return new Promise((resolve, reject) => {
        const onAbort = () => {
          leave(waiter)
          reject(signal.reason)
        }
        const waiter: Waiter = {
          turn,
          start: () => {
            signal.removeEventListener('abort', onAbort)
            resolve(begin(turn))
          },
        }
        signal.addEventListener('abort', onAbort, { once: true })
        queue.push(waiter)
        if (!order.includes(turn.namespace)) order = [...order, turn.namespace]
      })
    },
  }
}

/** The node's processors, and one turn more, which one namespace cannot have: CRIU and the copies that it makes use the processors. */
export function createSaveTurns(processors: number): Turns {
  const most = processors + 1
  return createTurns({ forAll: most, forEach: most })
}

function add(counts: Map<string, number>, key: string, by: number): void {
  const now = (counts.get(key) ?? 0) + by
  if (now === 0) counts.delete(key)
  else counts.set(key, now)
}
