/**
 * An API server in memory: versions, preconditions, merge patches, graceful deletion, and the history that watches
 * follow. Everything here is instantaneous: delay and loss belong to the client. It validates nothing, sets no defaults,
 * and deletes no dependants.
 *
 * Long because every verb works on the same objects and history.
 */
import { isEqual } from '../equal.ts'
import { KubeError } from '../errors.ts'
import { type KubeObject, keyOf, keyOfRef, type ObjectRef } from '../object.ts'
import { pods, type Resource, resourceName } from '../resources.ts'

export interface HistoryEvent {
  readonly version: number
  /** Milliseconds since 1970. */
  readonly at: number
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: KubeObject
  readonly old: KubeObject | undefined
}

interface Collection {
  readonly objects: Map<string, KubeObject>
  readonly history: HistoryEvent[]
}

type Json = Readonly<Record<string, unknown>>

export interface Preconditions {
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
}

/** The part of an API server that everything except operators, agents and kubelets uses. */
export interface Objects {
  find<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): T | undefined
  list<T extends KubeObject>(resource: Resource<T>): readonly T[]
  create(resource: Resource<KubeObject>, body: unknown, namespace: string | undefined): void
  patch(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    type: 'merge' | 'strategic',
    body: unknown,
    subresource: 'status' | undefined,
  ): void
  /** Binds a pod to a node, as a scheduler does. */
  bind(pod: ObjectRef, node: string): void
  /**
   * Deletes an object. A pod on a node gets a deletion timestamp and stays until its node, or a forced deletion,
   * removes it.
   */
  delete(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    preconditions: Preconditions,
    gracePeriodSeconds: number | undefined,
  ): void
  /** `listener` is called with every change. */
  subscribe(listener: (resource: string, event: Omit<HistoryEvent, 'version' | 'at'>) => void): void
}

export interface ApiServer extends Objects {
  readonly version: number
  get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): T
  history(resource: Resource<KubeObject>): readonly HistoryEvent[]
  create<T extends KubeObject>(resource: Resource<T>, body: unknown, namespace: string | undefined): T
  patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    type: 'merge' | 'strategic',
    body: unknown,
    subresource: string | undefined,
  ): T
  replace<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    body: unknown,
    subresource: string | undefined,
  ): T
}

/**
 * @param now returns milliseconds since 1970
 * @param withSubresource plural names of the kinds, besides pods, whose status is a subresource
 */
export function createApiServer(now: () => number, withSubresource: readonly string[] = []): ApiServer {
  const hasStatus = new Set(['pods', ...withSubresource])
  const collections = new Map<string, Collection>()
  const listeners: ((resource: string, event: HistoryEvent) => void)[] = []
  let version = 1
  let uids = 0

  const collection = (resource: Resource<KubeObject>): Collection => {
    const name = resourceName(resource)
    const known = collections.get(name)
    if (known !== undefined) return known
    const made = { objects: new Map(), history: [] }
    collections.set(name, made)
    return made
  }
  const record = (resource: Resource<KubeObject>, event: Omit<HistoryEvent, 'version' | 'at'>) => {
    const told = { ...event, version, at: now() }
    collection(resource).history.push(told)
    for (const listener of listeners) listener(resourceName(resource), told)
  }
  const require = (resource: Resource<KubeObject>, ref: ObjectRef): KubeObject => {
    const found = collection(resource).objects.get(keyOfRef(ref))
    if (found === undefined)
      throw new KubeError('NotFound', `${resourceName(resource)} ${keyOfRef(ref)}`, { status: 404 })
    return found
  }
  const check = (object: KubeObject, { uid, resourceVersion }: Preconditions) => {
    const isOther = uid !== undefined && uid !== object.metadata.uid
    const isOld = resourceVersion !== undefined && resourceVersion !== object.metadata.resourceVersion
    if (isOther || isOld) throw new KubeError('Conflict', `${keyOf(object)} has changed`, { status: 409 })
  }
  const remove = (resource: Resource<KubeObject>, object: KubeObject) => {
    version += 1
    collection(resource).objects.delete(keyOf(object))
    const last = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } }
    record(resource, { type: 'DELETED', object: last, old: object })
  }
  const store = (resource: Resource<KubeObject>, old: KubeObject, next: KubeObject): KubeObject => {
    const { resourceVersion: _, ...before } = old.metadata
    const { resourceVersion: __, ...after } = next.metadata
    if (isEqual({ ...old, metadata: before }, { ...next, metadata: after })) return old
    version += 1
    const isOfSpec = !isEqual(specOf(old), specOf(next))
    const generation = (old.metadata.generation ?? 1) + (isOfSpec ? 1 : 0)
    const metadata = { ...next.metadata, generation, resourceVersion: String(version) }
    const object = { ...next, metadata }
    collection(resource).objects.set(keyOf(object), object)
    record(resource, { type: 'MODIFIED', object, old })
    return object
  }

  const told = (resource: Resource<KubeObject>, object: KubeObject, grace: number): KubeObject => {
    const metadata = {
      ...object.metadata,
      deletionTimestamp: wholeSeconds(now() + grace * 1000),
      deletionGracePeriodSeconds: grace,
    }
    return store(resource, object, { ...object, metadata })
  }

  /**
   * The status is only written through its subresource. That writes nothing else, except metadata of pods.
   */
  const write = (
    resource: Resource<KubeObject>,
    old: KubeObject,
    given: KubeObject,
    subresource: string | undefined,
  ): KubeObject => {
    if (subresource === 'status') {
      if (resource.plural !== 'pods') return store(resource, old, withStatus(old, statusOf(given)))
      // The owners of pods stay, too.
      const { ownerReferences } = old.metadata
      const metadata = { ...identity(given, old), ...(ownerReferences && { ownerReferences }) }
      return store(resource, old, withStatus({ ...old, metadata }, statusOf(given)))
    }
    const next = hasStatus.has(resource.plural) ? withStatus(given, statusOf(old)) : given
    const object = { ...next, metadata: identity(next, old) }
    const isGoing = old.metadata.deletionTimestamp !== undefined
    if (!isGoing || isHeldBack(object) || isOnNode(resource, object)) return store(resource, old, object)
    // As in Kubernetes, the object in the DELETED event still has its last finalizer.
    remove(resource, old)
    return object
  }

  return {
    get version() {
      return version
    },
    get: <T extends KubeObject>(resource: Resource<T>, ref: ObjectRef) => require(resource, ref) as T,
    find: <T extends KubeObject>(resource: Resource<T>, ref: ObjectRef) =>
      collection(resource).objects.get(keyOfRef(ref)) as T | undefined,
    list: <T extends KubeObject>(resource: Resource<T>) =>
      [...collection(resource).objects.values()] as unknown as readonly T[],
    history: resource => collection(resource).history,
    create<T extends KubeObject>(resource: Resource<T>, body: unknown, namespace: string | undefined) {
      const given = body as {
        readonly metadata: Json & { readonly name: string; readonly namespace?: string }
      }
      const ref = { namespace: namespace ?? given.metadata.namespace, name: given.metadata.name }
      const { objects } = collection(resource)
      if (objects.has(keyOfRef(ref)))
        throw new KubeError('AlreadyExists', `${resourceName(resource)} ${keyOfRef(ref)}`, { status: 409 })
      version += 1
      uids += 1
      const metadata = {
        ...given.metadata,
        ...(ref.namespace === undefined ? {} : { namespace: ref.namespace }),
        uid: `00000000-0000-4000-8000-${uids.toString(16).padStart(12, '0')}`,
        creationTimestamp: wholeSeconds(now()),
        generation: 1,
        resourceVersion: String(version),
      }
      const { status, ...rest } = given as Json
      const first = resource.plural === 'pods' ? { phase: 'Pending' } : undefined
      const kept = hasStatus.has(resource.plural) ? first : status
      const object = {
        ...rest,
        metadata,
        ...(kept === undefined ? {} : { status: kept }),
      } as unknown as T
      objects.set(keyOf(object), object)
      record(resource, { type: 'ADDED', object, old: undefined })
      return object
    },
    patch<T extends KubeObject>(
      resource: Resource<T>,
      ref: ObjectRef,
      type: 'merge' | 'strategic',
      body: unknown,
      subresource: string | undefined,
    ) {
      const old = require(resource, ref)
      const patch = body as Json & { readonly metadata?: Preconditions }
      const { uid, resourceVersion } = patch.metadata ?? {}
      if (uid !== undefined && uid !== old.metadata.uid)
        throw new KubeError('Conflict', `${keyOf(old)} is another one`, { status: 422 })
      check(old, { resourceVersion })
      const applied = (type === 'merge' ? merge(old, patch) : strategic(old, patch)) as KubeObject
      return write(resource, old, applied, subresource) as T
    },
    replace<T extends KubeObject>(
      resource: Resource<T>,
      ref: ObjectRef,
      body: unknown,
      subresource: string | undefined,
    ) {
      const old = require(resource, ref)
      const given = body as KubeObject
      if (given.metadata.resourceVersion === undefined && resource.plural !== 'pods')
        throw new KubeError('Invalid', 'metadata.resourceVersion must be specified', { status: 422 })
      check(old, given.metadata)
      return write(resource, old, given, subresource) as T
    },
    bind(ref, nodeName) {
      const old = require(pods, ref)
      write(pods, old, merge(old, { spec: { nodeName } }) as KubeObject, undefined)
    },
    delete(resource, ref, preconditions, gracePeriodSeconds) {
      const object = require(resource, ref)
      check(object, preconditions)
      const { deletionTimestamp, deletionGracePeriodSeconds: before } = object.metadata
      const usual = isOnNode(resource, object)
        ? Number((specOf(object) as Json)['terminationGracePeriodSeconds'] ?? 30)
        : 0
      const grace = usual === 0 ? 0 : (gracePeriodSeconds ?? before ?? usual)
      const isHeld = isHeldBack(object)
      if (grace === 0 && !isHeld) {
        // A pod's removal causes two events: a change of its grace period to 0, and its deletion.
        remove(resource, resource.plural === 'pods' ? told(resource, object, 0) : object)
        return
      }
      // A pod that is terminating can only get a shorter grace period.
      if (deletionTimestamp !== undefined && grace >= (before ?? 0)) return
      told(resource, object, grace)
    },
    subscribe: listener => void listeners.push(listener),
  }
}

const withStatus = (object: KubeObject, status: unknown): KubeObject => {
  const { status: _, ...rest } = object as KubeObject & { readonly status?: unknown }
  return (status === undefined ? rest : { ...rest, status }) as KubeObject
}

const isHeldBack = ({ metadata }: KubeObject): boolean =>
  ((metadata as { readonly finalizers?: readonly string[] }).finalizers ?? []).length > 0

/** True for a pod that its node ends; the node reports when that is done. */
const isOnNode = (resource: Resource<KubeObject>, object: KubeObject): boolean => {
  const phase = (statusOf(object) as Json | undefined)?.['phase']
  return (
    resource.plural === 'pods' &&
    (specOf(object) as Json | undefined)?.['nodeName'] !== undefined &&
    phase !== 'Succeeded' &&
    phase !== 'Failed'
  )
}

const wholeSeconds = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`

const specOf = (object: KubeObject): unknown => (object as unknown as Json)['spec']
const statusOf = (object: KubeObject): unknown => (object as unknown as Json)['status']

/** Keeps the fields that no write can change. */
function identity({ metadata }: KubeObject, old: KubeObject): KubeObject['metadata'] {
  const { uid, name, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, generation } =
    old.metadata
  return {
    ...metadata,
    ...{ uid, name },
    ...(old.metadata.namespace === undefined ? {} : { namespace: old.metadata.namespace }),
    ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...(deletionGracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds }),
    ...(generation === undefined ? {} : { generation }),
  }
}

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** RFC 7386. */
function merge(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch
  const result: Record<string, unknown> = isRecord(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === undefined) continue
    if (value === null) delete result[key]
    else result[key] = merge(result[key], value)
  }
  return result
}

function strategic(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch
  const result: Record<string, unknown> = isRecord(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === undefined) continue
    if (value === null) delete result[key]
    else if (key === 'conditions' && Array.isArray(value))
      result[key] = mergeConditions((result[key] as readonly Json[] | undefined) ?? [], value)
    else result[key] = strategic(result[key], value)
  }
  return result
}

/** A new type is inserted before the types that the patch does not name; all others keep their order. */
function mergeConditions(old: readonly Json[], patch: readonly Json[]): readonly Json[] {
  const placeOf = ({ type }: Json) => old.findIndex(each => each['type'] === type)
  const others = old.filter(({ type }) => !patch.some(each => each['type'] === type))
  const merged: Json[] = []
  for (const item of patch) {
    const place = placeOf(item)
    while (others[0] !== undefined && placeOf(others[0]) < place) merged.push(others.shift() as Json)
    merged.push(place < 0 ? item : (strategic(old[place], item) as Json))
  }
  return [...merged, ...others]
}
