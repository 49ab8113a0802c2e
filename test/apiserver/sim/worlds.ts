/**
 * Carries out a list of calls on an API server, the real one or the simulation's, so that the answers can be compared.
 */
import type { Api, DeleteQuery, ListQuery, Patch } from '../../../src/kube/api-types.ts'
import { isKubeError } from '../../../src/kube/errors.ts'
import type { KubeObject, ObjectRef } from '../../../src/kube/object.ts'
import { type Resource, resourceName } from '../../../src/kube/resources.ts'
import { createApiServer } from '../../../src/kube/testing/api-server.ts'
import { createLink, createNetworkApi, statusKinds } from '../../sim/model/network.ts'
import { createVirtualTime, epoch } from '../../sim/model/virtual-time.ts'

type Json = Readonly<Record<string, unknown>>

/** Earlier answers that a call depends on. */
export interface Seen {
  /** Returns the object in the answer to the step of this name. */
  of(step: string): KubeObject
}

export type Call =
  | { readonly do: 'create'; readonly of: Resource<KubeObject>; readonly body: Json }
  | { readonly do: 'get'; readonly of: Resource<KubeObject>; readonly name: string }
  | { readonly do: 'list'; readonly of: Resource<KubeObject>; readonly query?: ListQuery }
  | {
      readonly do: 'patch'
      readonly of: Resource<KubeObject>
      readonly name: string
      readonly patch: Patch
      readonly sub?: 'status'
    }
  | {
      readonly do: 'replace'
      readonly of: Resource<KubeObject>
      readonly name: string
      readonly body: Json
      readonly sub?: 'status'
    }
  | {
      readonly do: 'delete'
      readonly of: Resource<KubeObject>
      readonly name: string
      readonly query?: DeleteQuery
    }

export interface Step {
  readonly step: string
  readonly call: (seen: Seen) => Call
}

export interface World {
  readonly api: Api
  readonly namespace: string
  /** Waits for a request; virtual time passes meanwhile. */
  settle<T>(asked: Promise<T>): Promise<T>
}

/** The simulation's API server, over its network without faults. */
export function modelWorld(): World {
  const time = createVirtualTime()
  const server = createApiServer(() => epoch + time.now(), statusKinds)
  const party = time.createParty('test')
  const random = { next: () => 0.5, bytes: (count: number) => new Uint8Array(count) }
  const api = createNetworkApi({ server, time, party, link: createLink(), random })
  return {
    api,
    namespace: 'here',
    async settle(asked) {
      let isOver = false
      const end = () => {
        isOver = true
      }
      asked.then(end, end)
      for (let tries = 0; !isOver && tries < 1_000; tries += 1) await time.runUntil(time.now() + 50)
      return asked
    },
  }
}

/** Returns, for every step, the answer and the objects' state after it. */
export async function carryOut(world: World, steps: readonly Step[]): Promise<Map<string, unknown>> {
  const { api, namespace, settle } = world
  const objects = new Map<string, KubeObject>()
  const names = namesOf(namespace)
  const answers = new Map<string, unknown>()
  const seen: Seen = {
    of(step) {
      const object = objects.get(step)
      if (object === undefined) throw new Error(`step ${step} was answered with no object`)
      return object
    },
  }
  for (const { step, call } of steps) {
    const it = call(seen)
    try {
      const answer = await settle(ask(api, namespace, it))
      if (isObject(answer)) objects.set(step, answer)
      answers.set(step, isObject(answer) ? names.look(it.of, answer) : lookOfList(names, it.of, answer))
    } catch (error) {
      if (!isKubeError(error)) throw error
      answers.set(step, { code: error.code, status: error.status })
    }
  }
  return answers
}

const isObject = (answer: unknown): answer is KubeObject =>
  typeof answer === 'object' && answer !== null && 'metadata' in answer && !('items' in answer)

const lookOfList = (names: Names, of: Resource<KubeObject>, answer: unknown): unknown => {
  const items = (answer as { readonly items?: readonly KubeObject[] } | undefined)?.items
  return items?.map(object => names.look(of, object).metadata.name)
}

function ask(api: Api, namespace: string, call: Call): Promise<unknown> {
  const ref = (name: string): ObjectRef => ({ namespace, name })
  switch (call.do) {
    case 'create':
      return api.create(call.of, call.body, { namespace })
    case 'get':
      return api.get(call.of, ref(call.name))
    case 'list':
      return api.list(call.of, { namespace, ...call.query })
    case 'patch':
      return api.patch(call.of, ref(call.name), call.patch, { subresource: call.sub })
    case 'replace':
      return api.replace(call.of, ref(call.name), call.body, { subresource: call.sub })
    case 'delete':
      return api.delete(call.of, ref(call.name), call.query)
  }
}

interface Look {
  readonly metadata: Json & { readonly name: string }
  readonly spec: unknown
  readonly status: unknown
}

interface Names {
  /**
   * Returns the object without values that differ between servers: uids and versions get names in order of appearance.
   */
  look(of: Resource<KubeObject>, object: KubeObject): Look
}

export function namesOf(namespace: string): Names {
  const uids = new Map<string, string>()
  const versions = new Map<string, string[]>()
  const uid = (text: string) => {
    const name = uids.get(text) ?? `uid ${uids.size + 1}`
    uids.set(text, name)
    return name
  }
  return {
    look(of, object) {
      const { metadata, spec, status } = object as KubeObject & { spec?: Json; status?: Json }
      const { managedFields: _, creationTimestamp, resourceVersion, deletionTimestamp, ...rest } = metadata
      const key = uid(metadata.uid)
      const known = versions.get(key) ?? []
      versions.set(key, known)
      if (known.at(-1) !== resourceVersion) {
        if (known.some(version => Number(version) >= Number(resourceVersion)))
          throw new Error(`${resourceName(of)} went back to version ${resourceVersion}`)
        known.push(resourceVersion)
      }
      const {
        generation,
        selfLink: __,
        annotations = {},
        ...meta
      } = rest as Json & {
        generation?: number
        annotations?: Json
      }
      return {
        metadata: {
          ...meta,
          // A map without entries is absent in the answers of the real server.
          ...(Object.keys(annotations).length > 0 && { annotations }),
          name: metadata.name,
          namespace: metadata.namespace === namespace ? 'here' : metadata.namespace,
          uid: key,
          version: `version ${known.length}`,
          created: isWholeSeconds(creationTimestamp),
          ...(deletionTimestamp === undefined ? {} : { going: isWholeSeconds(deletionTimestamp) }),
          // Other kinds' generations are never read.
          ...(counts.has(resourceName(of)) ? { generation } : {}),
        },
        spec: plain(spec),
        status: plain(withoutDefaults(status)),
      }
    },
  }
}

/** Kinds whose generation is read. */
const counts = new Set(['backuppodsets.backup.example.com'])

const isWholeSeconds = (text: string | undefined): string =>
  text !== undefined && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text) ? 'whole seconds' : String(text)

const plain = (value: unknown): unknown =>
  value === undefined ? undefined : JSON.parse(JSON.stringify(value))

/** Removes what the real server's admission and defaults add; no test reads it. */
const withoutDefaults = (status: Json | undefined): Json | undefined => {
  if (status === undefined) return undefined
  const { qosClass: _, podIPs: __, conditions, ...rest } = status
  const listed = (conditions as readonly Json[] | undefined)?.map(({ lastProbeTime: _, ...each }) => each)
  const all = { ...rest, ...(listed && { conditions: listed }) }
  return Object.keys(all).length === 0 ? undefined : all
}

/** Returns the part of `theirs` that `ours` has, too. The two agree if the result equals `ours`. */
export function within(theirs: unknown, ours: unknown): unknown {
  if (Array.isArray(ours) && Array.isArray(theirs))
    return theirs.map((item, index) => within(item, ours[index]))
  if (!isRecord(ours) || !isRecord(theirs)) return theirs
  // Outside a spec, everything is compared.
  if (!('spec' in ours))
    return Object.fromEntries(Object.entries(theirs).map(([key, value]) => [key, within(value, ours[key])]))
  return Object.fromEntries(
    Object.entries(theirs).map(([key, value]) => [
      key,
      key === 'spec' ? only(value, ours[key]) : within(value, ours[key]),
    ]),
  )
}

/** Returns only the fields that `ours` has. */
function only(theirs: unknown, ours: unknown): unknown {
  if (Array.isArray(ours) && Array.isArray(theirs))
    return theirs.map((item, index) => only(item, ours[index]))
  if (!isRecord(ours) || !isRecord(theirs)) return theirs
  return Object.fromEntries(
    Object.entries(theirs).flatMap(([key, value]) => (key in ours ? [[key, only(value, ours[key])]] : [])),
  )
}

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
