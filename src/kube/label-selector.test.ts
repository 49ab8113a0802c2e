import { expect, test } from 'vitest'
import { isSelected, type LabelSelector } from './label-selector.ts'

const labels = { app: 'web', tier: 'front' }

test.each<readonly [string, LabelSelector | undefined, boolean]>([
  ['no selector', undefined, false],
  ['an empty selector', {}, true],
  ['equal labels', { matchLabels: { app: 'web' } }, true],
  ['another value', { matchLabels: { app: 'web', tier: 'back' } }, false],
  ['a label that is absent', { matchLabels: { zone: 'a' } }, false],
  ['In', { matchExpressions: [{ key: 'app', operator: 'In', values: ['db', 'web'] }] }, true],
  ['In without the value', { matchExpressions: [{ key: 'app', operator: 'In', values: ['db'] }] }, false],
  ['In of an absent label', { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }, false],
  ['NotIn', { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['web'] }] }, false],
  [
    'NotIn of an absent label',
    { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] },
    true,
  ],
  ['Exists', { matchExpressions: [{ key: 'app', operator: 'Exists' }] }, true],
  ['DoesNotExist', { matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] }, false],
  [
    'all requirements',
    { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'zone', operator: 'Exists' }] },
    false,
  ],
])('%s', (_, selector, selected) => {
  expect(isSelected(selector, labels)).toBe(selected)
})
