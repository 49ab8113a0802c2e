/** An event (events.k8s.io/v1): its parts, its object on the server, and which events are equal. */
import type { KubeObject } from './object.ts'
import type { Random } from './random.ts'
import { apiVersionOf, type Resource } from './resources.ts'

/** The object that an event is about. Make it with `referenceTo`. */
export interface ObjectReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  /** Absent for cluster-scoped objects; their events go to the namespace `default`. */
  readonly namespace?: string | undefined
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
  readonly fieldPath?: string | undefined
}

export interface EventRecord {
  readonly regarding: ObjectReference
  /** A second object that is involved, e.g. the pod that was created. */
  readonly related?: ObjectReference | undefined
  readonly type: 'Normal' | 'Warning'
  /** The cause, in CamelCase, from a fixed list. Cut at 128 bytes. */
  readonly reason: string
  /** The action that was taken, in CamelCase. Cut at 128 bytes. */
  readonly action: string
  /** For people. Cut at 1024 bytes. */
  readonly note: string
}

/** The reference to an object of this resource. Items of a list do not carry their kind. */
export function referenceTo<T extends KubeObject>(of: Resource<T>, object: T): ObjectReference {
  const { name, namespace, uid, resourceVersion } = object.metadata
  return {
    apiVersion: apiVersionOf(of),
    kind: of.kind,
    name,
    ...(namespace && { namespace }),
    uid,
    resourceVersion,
  }
}

/** Equal events have equal keys. `series` distinguishes events that are otherwise alike. */
export function keyOfEvent(
  { regarding, related, type, reason, action }: EventRecord,
  series: string,
): string {
  const about = (ref: ObjectReference | undefined) =>
    ref && [ref.apiVersion, ref.kind, ref.namespace, ref.name, ref.uid, ref.fieldPath]
  return JSON.stringify([about(regarding), about(related), type, reason, action, series])
}

/** The object's name and a random part, as a DNS subdomain of at most 253 characters. */
export function eventName(object: string, random: Random): string {
  const suffix = Buffer.from(random.bytes(8)).toString('hex')
  const start = object.slice(0, 236).replace(/[-.]+$/, '')
  // Some kinds (RBAC) allow names that are invalid for an event.
  return `${/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(start) ? start : 'event'}.${suffix}`
}

/** Cuts at this many bytes of UTF-8, the server's unit, and never inside a character. */
export function cut(text: string, bytes: number): string {
  const encoded = Buffer.from(text)
  if (encoded.length <= bytes) return text
  let end = bytes - 3
  while (((encoded[end] ?? 0) & 0xc0) === 0x80) end--
  return `${encoded.subarray(0, end).toString()}...`
}
