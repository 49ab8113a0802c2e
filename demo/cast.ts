/** Follows the set's pods with a watch. */
import { labels } from '../src/api/labels.ts'
import type { Api } from '../src/kube/api.ts'
import { systemClock } from '../src/kube/clock.ts'
import { silentLog } from '../src/kube/log.ts'
import { systemRandom } from '../src/kube/random.ts'
import { createReflector } from '../src/kube/reflector.ts'
import { type Pod, pods } from '../src/kube/resources.ts'
import { type Change, createStore } from '../src/kube/store.ts'
import { type PodRow, rowOf, rowsOf } from './picture.ts'

export interface Cast extends AsyncDisposable {
  rows(): PodRow[]
  /** Calls `listener` with a text about each event of a pod. @returns a function that ends this */
  follow(listener: (happening: string) => void): () => void
  /**
   * Resolves at the first moment at which `test` holds.
   * @throws Error with `what` after `patienceMs`
   */
  until(
    what: string,
    test: (rows: PodRow[]) => boolean,
    patienceMs: number,
    signal: AbortSignal,
  ): Promise<void>
}

export async function watchCast(
  api: Api,
  namespace: string,
  set: string,
  signal: AbortSignal,
): Promise<Cast> {
  const store = createStore<Pod>()
  const stop = new AbortController()
  const reflector = createReflector({
    api,
    resource: pods,
    query: { namespace, labelSelector: `${labels.set}=${set}` },
    store,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  })
  const running = reflector.run(stop.signal)
  await reflector.synced(signal)
  const rows = () => rowsOf(store.list())
  return {
    rows,
    follow: listener =>
      store.subscribe(change => {
        for (const text of happenings(change)) listener(text)
      }),
    async until(what, test, patienceMs, outer) {
      const timeout = AbortSignal.timeout(patienceMs)
      const either = AbortSignal.any([outer, timeout])
      await new Promise<void>((resolve, reject) => {
        const look = () => {
          if (!test(rows())) return
          unsubscribe()
          resolve()
        }
        const unsubscribe = store.subscribe(look)
        either.addEventListener('abort', () => {
          unsubscribe()
          reject(outer.aborted ? outer.reason : new Error(`${what}: not within ${patienceMs / 1000} s`))
        })
        look()
      })
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}

/** Describes one change of a pod in the terms of the story; empty for a change that does not matter to it. */
export function happenings(change: Change<Pod>): string[] {
  const row = rowOf(change.object)
  if (row === undefined) return []
  const { name, kind } = row
  if (change.type === 'deleted') return [`${name} is gone`]
  const old = change.type === 'updated' ? rowOf(change.old) : undefined
  if (old === undefined) return [`${name} created as ${kind}`]
  const told: string[] = []
  if (old.kind !== kind)
    told.push(`${name} ${old.kind} → ${kind}${kind === 'primary' ? `, slot ${row.slot}` : ''}`)
  if (row.leaving && !old.leaving) told.push(`${name} is being deleted`)
  // A pod whose kind changes may be in place as both kinds.
  if (!row.leaving && row.inPlace && (!old.inPlace || old.kind !== kind))
    told.push(`${name} ${kind === 'coldbackup' ? `waits at its gate on ${row.node}` : 'is ready'}`)
  return told
}
