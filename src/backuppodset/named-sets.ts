/**
 * Which sets the metrics tell by name. Whoever may create sets decides how many names there are, and each name costs
 * memory here and in every Prometheus that scrapes: the number is bounded, and a name ends with its set.
 */

import { mostOf } from '../kube/fair-share.ts'

export interface SetName {
  readonly namespace: string
  readonly name: string
}

export interface NamedSets {
  /** Whether the metrics may tell of this set. What is admitted stays so until it is forgotten. */
  admit(set: SetName): boolean
  forget(set: SetName): void
  clear(): void
  /** Sets that were turned away, and are there still. They are asked for again, and come in when there is a place. */
  readonly unnamed: number
}

/** Each has some 20 series, which is some KiB. */
const mostNames = 2_000

/** A namespace has at most this part of the names that the others leave: none takes all, however many sets it has. */
const share = 0.5

export function createNamedSets(most: number = mostNames): NamedSets {
  const admitted = new Map<string, Set<string>>()
  const turnedAway = new Set<string>()
  let count = 0
  return {
    get unnamed() {
      return turnedAway.size
    },
    admit({ namespace, name }) {
      const own = admitted.get(namespace) ?? new Set()
      if (own.has(name)) return true
      const key = `${namespace}/${name}`
      if (own.size + 1 > mostOf(most, count - own.size, share)) {
        turnedAway.add(key)
        return false
      }
      turnedAway.delete(key)
      admitted.set(namespace, own.add(name))
      count += 1
      return true
    },
    forget({ namespace, name }) {
      turnedAway.delete(`${namespace}/${name}`)
      const own = admitted.get(namespace)
      if (!own?.delete(name)) return
      count -= 1
      if (own.size === 0) admitted.delete(namespace)
    },
    clear() {
      admitted.clear()
      turnedAway.clear()
      count = 0
    },
  }
}
