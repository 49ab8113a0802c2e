/** The live pods of a namespace by kind, in every state that the API server has had. */
import { labels } from '../../../src/api/labels.ts'
import type { Api } from '../../../src/kube/api.ts'
import { systemClock as clock } from '../../../src/kube/clock.ts'
import { silentLog } from '../../../src/kube/log.ts'
import { systemRandom as random } from '../../../src/kube/random.ts'
import { createReflector } from '../../../src/kube/reflector.ts'
import { type Pod, pods } from '../../../src/kube/resources.ts'
import { createStore } from '../../../src/kube/store.ts'

export interface Counts {
  /**
   * Returns the most live pods that there were at one time since the last call: primaries, hot backups, and backups of both kinds. A
   * cold backup that is being woken counts as hot, and is replaced, before its label says so.
   */
  most(): readonly (readonly Pod[])[]
}

const byKind = (all: readonly Pod[]) =>
  ['primary', 'hotbackup', 'coldbackup'].map(kind =>
    all.filter(pod => pod.metadata.labels?.[labels.type] === kind),
  )
const groups = (all: readonly Pod[]) => {
  const [primaries = [], hot = [], cold = []] = byKind(all)
  return [primaries, hot, [...hot, ...cold]]
}

export const numbers = (all: readonly Pod[]) => byKind(all).map(({ length }) => length)

/** Watches the pods of a namespace, so that no state between two reads is missed. */
export function watchCounts(api: Api, namespace: string): AsyncDisposable & Counts {
  const stop = new AbortController()
  const store = createStore<Pod>()
  let most = groups([])
  // Each state that the server had. A subscriber would also see states within a new list, which has every change at once.
  store.onAdvance(() => {
    const now = groups(store.list().filter(pod => pod.metadata.deletionTimestamp === undefined))
    most = most.map((pods, i) => ((now[i]?.length ?? 0) > pods.length ? (now[i] ?? []) : pods))
  })
  const query = { namespace, labelSelector: labels.set }
  const running = createReflector({ api, resource: pods, query, store, clock, random, log: silentLog }).run(
    stop.signal,
  )
  return {
    most: () => {
      const seen = most
      most = groups([])
      return seen
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}
