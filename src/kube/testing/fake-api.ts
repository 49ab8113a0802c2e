/** An API server whose answers a test gives. Code under test gets a complete `Api`. */
import type { Api, CallOptions, DeleteQuery, ListQuery, Patch, WriteOptions } from '../api-types.ts'
import type { KubeObject, List, ObjectMeta, ObjectRef } from '../object.ts'
import { type Resource, resourceName } from '../resources.ts'

type AnyResource = Resource<KubeObject>

/** A body as the client sends it: the API server adds the rest of `metadata`, and a patch has only some fields. */
export interface Body {
  readonly metadata?: Partial<ObjectMeta>
  readonly spec?: object
  readonly status?: object
}

/** The answers of one API server. A call without an answer fails, so a test names every call that it expects. */
export interface Answers {
  readonly get?: (resource: AnyResource, ref: ObjectRef, options?: CallOptions) => Promise<KubeObject>
  readonly list?: (
    resource: AnyResource,
    query: ListQuery,
    options?: CallOptions,
  ) => Promise<List<KubeObject>>
  readonly create?: (resource: AnyResource, body: Body, options?: WriteOptions) => Promise<KubeObject>
  readonly patch?: (
    resource: AnyResource,
    ref: ObjectRef,
    patch: { readonly type: Patch['type']; readonly body: Body },
    options?: WriteOptions,
  ) => Promise<KubeObject>
  readonly replace?: (
    resource: AnyResource,
    ref: ObjectRef,
    body: Body,
    options?: WriteOptions,
  ) => Promise<KubeObject>
  readonly delete?: (
    resource: AnyResource,
    ref: ObjectRef,
    query?: DeleteQuery,
    options?: CallOptions,
  ) => Promise<void>
  readonly request?: Api['request']
}

/**
 * Returns an API server with these answers. A test that knows one kind answers without the type of the resource, so
 * this is the one place that trusts an answer to have the type that the caller asked for.
 */
export function fakeApi(answers: Answers = {}): Api {
  const unexpected = (call: string): never => {
    throw new Error(`this test has no answer to ${call}`)
  }
  return {
    get: async <T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options?: CallOptions) =>
      (await (answers.get?.(resource, ref, options) ?? unexpected(`get ${resourceName(resource)}`))) as T,
    list: async <T extends KubeObject>(resource: Resource<T>, query: ListQuery, options?: CallOptions) =>
      (await (answers.list?.(resource, query, options) ??
        unexpected(`list ${resourceName(resource)}`))) as List<T>,
    create: async <T extends KubeObject>(resource: Resource<T>, body: unknown, options?: WriteOptions) =>
      (await (answers.create?.(resource, body as Body, options) ??
        unexpected(`create ${resourceName(resource)}`))) as T,
    patch: async <T extends KubeObject>(
      resource: Resource<T>,
      ref: ObjectRef,
      { type, body }: Patch,
      options?: WriteOptions,
    ) =>
      (await (answers.patch?.(resource, ref, { type, body: body as Body }, options) ??
        unexpected(`patch ${resourceName(resource)}`))) as T,
    replace: async <T extends KubeObject>(
      resource: Resource<T>,
      ref: ObjectRef,
      body: unknown,
      options?: WriteOptions,
    ) =>
      (await (answers.replace?.(resource, ref, body as Body, options) ??
        unexpected(`replace ${resourceName(resource)}`))) as T,
    delete: async (resource, ref, query, options) =>
      answers.delete?.(resource, ref, query, options) ?? unexpected(`delete ${resourceName(resource)}`),
    watch: resource => unexpected(`watch ${resourceName(resource)}`),
    request: async (method, path, options) =>
      answers.request?.(method, path, options) ?? unexpected(`${method} ${path}`),
    close: async () => {},
  }
}

/** Returns an object as the API server stores it, with metadata that the test does not care about. */
export const makeObject = <T extends Body>(
  body: T,
): Omit<T, 'metadata'> & { readonly metadata: ObjectMeta & T['metadata'] } => ({
  ...body,
  metadata: { name: 'x', uid: 'u', resourceVersion: '1', ...body.metadata },
})
