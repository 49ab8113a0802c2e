import { expect, it } from 'vitest'
import type { KubeObject } from './object.ts'
import { selectorOf } from './selector.ts'

const object = {
  metadata: {
    name: 'p',
    namespace: 'ns',
    uid: 'u',
    resourceVersion: '1',
    labels: { app: 'web', tier: 'back' },
  },
  spec: { nodeName: 'n1' },
} as KubeObject

it.each([
  ['', true],
  ['app', true],
  ['!app', false],
  ['!other', true],
  ['app=web', true],
  ['app==web,tier = back', true],
  ['app=web,tier=front', false],
  ['app!=web', false],
  ['other!=web', true],
  ['app in (web, api)', true],
  ['app in (api,db),tier', false],
  ['app notin (api,db), tier in (back)', true],
  ['other notin (a)', true],
])('label selector %j: %s', (labelSelector, isSelected) => {
  expect(selectorOf({ labelSelector })(object)).toBe(isSelected)
})

it('selects by namespace and fields, and refuses what is no selector', () => {
  expect(selectorOf({ namespace: 'ns', fieldSelector: 'spec.nodeName=n1,metadata.name!=q' })(object)).toBe(
    true,
  )
  expect(selectorOf({ namespace: 'other' })(object)).toBe(false)
  expect(selectorOf({ fieldSelector: 'status.phase=Running' })(object)).toBe(false)
  expect(() => selectorOf({ labelSelector: 'a > b' })).toThrow(TypeError)
})
