import { expect, expectTypeOf, test } from 'vitest'
import { keyOf, parseResourceVersion, refOfKey } from './object.ts'
import { apiVersionOf, type Lease, leases, nodes, type Pod, pathOf, pods, resourceName } from './resources.ts'

test('keys and references are each other', () => {
  for (const ref of [{ name: 'n1' }, { namespace: 'a', name: 'b' }]) {
    expect(refOfKey(keyOf({ metadata: ref }))).toEqual(ref)
  }
})

test('versions are compared as numbers, and nothing else is a version', () => {
  expect(parseResourceVersion('9') < parseResourceVersion('10')).toBe(true)
  expect(parseResourceVersion('18446744073709551615')).toBe(18446744073709551615n)
  for (const bad of ['', 'abc', '-1', '1.5', ' 1']) expect(() => parseResourceVersion(bad)).toThrow(TypeError)
})

test('paths of namespaced and cluster-scoped resources', () => {
  expect(pathOf(pods, {})).toBe('/api/v1/pods')
  expect(pathOf(pods, { namespace: 'a', name: 'b', subresource: 'status' })).toBe(
    '/api/v1/namespaces/a/pods/b/status',
  )
  expect(pathOf(leases, { namespace: 'a' })).toBe('/apis/coordination.k8s.io/v1/namespaces/a/leases')
  expect(pathOf(nodes, { namespace: 'ignored', name: 'n1' })).toBe('/api/v1/nodes/n1')
  expect([apiVersionOf(pods), apiVersionOf(leases)]).toEqual(['v1', 'coordination.k8s.io/v1'])
  expect([resourceName(pods), resourceName(leases)]).toEqual(['pods', 'leases.coordination.k8s.io'])
})

test('types say what is on the wire', () => {
  expectTypeOf<NonNullable<Lease['spec']>['renewTime']>().toEqualTypeOf<string | undefined>()
  expectTypeOf<Pod['metadata']['name']>().toEqualTypeOf<string>()
  expectTypeOf<NonNullable<NonNullable<Pod['status']>['startTime']>>().toEqualTypeOf<string>()
})
