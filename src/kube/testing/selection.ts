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
