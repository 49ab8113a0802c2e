/** The objects and events that a list or watch with selectors shows. */
import type { WatchEvent } from '../api-types.ts'
import { type KubeObject, keyOf } from '../object.ts'
import type { HistoryEvent } from './api-server.ts'

/** In the order of a list's answer. */
export const inOrder = <T extends KubeObject>(objects: readonly T[]): readonly T[] =>
  objects.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))

/**
 * For a watcher with a selector, an object that starts to match is ADDED, and one that no longer matches is DELETED.
 */
export function visible<T extends KubeObject>(
  { type, object, old }: HistoryEvent,
  selects: (object: KubeObject) => boolean,
): WatchEvent<T> | undefined {
  const was = old !== undefined && selects(old)
  const is = type !== 'DELETED' && selects(object)
  if (!was && !is) return undefined
  if (is) return { type: was ? 'MODIFIED' : 'ADDED', object: object as T }
  // The object as it last matched, with the version of its deletion.
  const { resourceVersion } = object.metadata
  const last = type === 'DELETED' ? object : { ...old, metadata: { ...old?.metadata, resourceVersion } }
  return { type: 'DELETED', object: last as T }
}

/** One requirement of a label or field selector: `a`, `!a`, `a=b`, `a==b`, `a!=b`. */
const requirement = /^(!?)([\w./-]+)(?:(!=|==?)([\w.-]*))?$/

/** @throws TypeError for a selector that it does not know, such as `a in (b, c)`. */
export function selectorOf({
  namespace,
  labelSelector,
  fieldSelector,
}: Selection): (object: KubeObject) => boolean {
  const byLabels = requirementsOf(labelSelector)
  const byFields = requirementsOf(fieldSelector)
  return object =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    byLabels((name): unknown => object.metadata.labels?.[name]) &&
    byFields(path =>
      path
        .split('.')
        .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], object),
    )
}

interface Selection {
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
}

function requirementsOf(selector: string | undefined): (read: (name: string) => unknown) => boolean {
  const all = (selector ?? '')
    .split(',')
    .filter(text => text !== '')
    .map(text => {
      const parsed = requirement.exec(text.trim())
      if (parsed === null) throw new TypeError(`no selector that this server knows: ${text}`)
      const [, not, name = '', operator, wanted] = parsed
      return (read: (name: string) => unknown) => {
        const value = read(name)
        if (operator === undefined) return (value !== undefined) === (not === '')
        return (value === wanted) === (operator !== '!=')
      }
    })
  return read => all.every(holds => holds(read))
}
