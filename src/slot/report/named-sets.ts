/**
 * The sets that metrics name. Every user who may create sets adds names, and each name costs memory here and in every
 * Prometheus that scrapes. So the number of names is bounded, and a name is removed with its set.
 */

import { mostOf } from '../../kube/fair-share.ts'

export interface SetName {
  readonly namespace: string
  readonly name: string
}

export interface NamedSets {
  /** Returns whether the metrics may name this set. An admitted set stays admitted until it is forgotten. */
  admit(set: SetName): boolean
  forget(set: SetName): void
  clear(): void
  /** Number of existing sets that were refused. They ask again and are admitted when a place is free. */
  readonly unnamed: number
}

/** Each name has about 20 series, which take some KiB. */
const mostNames = 2_000

/** A namespace gets at most this share of the names that other namespaces leave free, so that none can take all. */
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
