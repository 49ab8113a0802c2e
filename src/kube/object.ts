/**
 * Kubernetes objects in their wire form.
 *
 * The generated classes of client-node describe the decoded form (Date objects, mutable fields). This kit reads and
 * writes plain JSON and shares one copy of an object between all readers, so in its types times are strings and
 * everything is read-only.
 */
import type { V1ObjectMeta } from '@kubernetes/client-node'

type IsAny<T> = 0 extends 1 & T ? true : false

/** A client-node model type as plain JSON: Date -> RFC 3339 string, read-only all the way down. */
export type Wire<T> =
  IsAny<T> extends true
    ? T
    : T extends Date
      ? string
      : T extends (infer Item)[]
        ? readonly Wire<Item>[]
        : T extends object
          ? { readonly [Key in keyof T]: Wire<T[Key]> }
          : T

/** Metadata of an object that the API server has returned: it always has name, uid and resourceVersion. */
export interface ObjectMeta extends Omit<Wire<V1ObjectMeta>, 'name' | 'uid' | 'resourceVersion'> {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
}

/** Anything the API server stores. `apiVersion` and `kind` are absent on items of a list. */
export interface KubeObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: ObjectMeta
}

/** A client-node model type (`V1Pod`) as an object read from the API server. */
export type Stored<T> = Omit<Wire<T>, keyof KubeObject> & KubeObject

/** Names one object of a known resource; `namespace` is absent for cluster-scoped ones. */
export interface ObjectRef {
  readonly namespace?: string | undefined
  readonly name: string
}

/** One page of a list. `continue` is absent on the last page. */
export interface List<T> {
  readonly metadata: {
    readonly resourceVersion: string
    readonly continue?: string
    readonly remainingItemCount?: number
  }
  readonly items: readonly T[]
}

/** The identity of an object inside one resource: `namespace/name`, or `name` when it has no namespace. */
export function keyOf(object: { readonly metadata: ObjectRef }): string {
  return keyOfRef(object.metadata)
}

/** As `keyOf`, from a reference. */
export function keyOfRef({ namespace, name }: ObjectRef): string {
  return namespace ? `${namespace}/${name}` : name
}

/** The reference that a key names. Names and namespaces cannot contain a slash. */
export function refOfKey(key: string): ObjectRef {
  const slash = key.indexOf('/')
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}

/**
 * A resourceVersion as an integer. They are comparable within one resource (officially since Kubernetes 1.35).
 * @throws TypeError when it is not a decimal integer: comparing such a value would be silently wrong.
 */
export function parseResourceVersion(version: string): bigint {
  if (!/^\d+$/.test(version))
    throw new TypeError(`not a comparable resourceVersion: ${JSON.stringify(version)}`)
  return BigInt(version)
}

/** Truncates a text and marks the cut with `…`: the API server refuses an object in which one text is too long. */
export const cutTo = (text: string, characters: number): string =>
  text.length <= characters ? text : `${text.slice(0, characters - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
