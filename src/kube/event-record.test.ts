import { expect, test } from 'vitest'
import { referenceTo } from './event-record.ts'
import { pods } from './resources.ts'
import { event, makeRecorder, type Stored } from './testing/recorder.ts'

test('lengths stay within what the server takes', async () => {
  const { recorder, stored } = makeRecorder()
  recorder.record(
    event({
      reason: 'R'.repeat(200),
      action: 'A'.repeat(200),
      note: '\u{1F3AD}'.repeat(300),
      regarding: { apiVersion: 'v1', kind: 'Pod', namespace: 'ns', name: `${'a'.repeat(235)}.b`, uid: 'u' },
    }),
  )
  recorder.record(event({ regarding: { apiVersion: 'v1', kind: 'ClusterRole', name: 'system:x' } }))
  await recorder.flush()
  const [long, clusterScoped] = stored() as (Stored & { action: string })[]
  expect(long?.reason).toHaveLength(128)
  expect(long?.action).toHaveLength(128)
  expect(Buffer.byteLength(long?.note ?? '')).toBeLessThanOrEqual(1024)
  expect(long?.note).toMatch(/^(\u{1F3AD})+\.\.\.$/u)
  expect(long?.metadata.name.length).toBeLessThanOrEqual(253)
  expect(long?.metadata.name).toMatch(/^a+\.[0-9a-f]{16}$/)
  expect(clusterScoped?.metadata).toEqual({
    namespace: 'default',
    name: expect.stringMatching(/^event\.[0-9a-f]{16}$/),
  })
})

test('a reference carries the kind that items of a list lack', () => {
  expect(
    referenceTo(pods, { metadata: { name: 'a', namespace: 'ns', uid: 'u', resourceVersion: '7' } }),
  ).toEqual({ apiVersion: 'v1', kind: 'Pod', name: 'a', namespace: 'ns', uid: 'u', resourceVersion: '7' })
})
