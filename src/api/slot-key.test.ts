import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  formatSlotKey,
  parseSlotKey,
  type SlotKey,
  slotFieldsOf,
  slotKeyIn,
  splitNumber,
} from './slot-key.ts'

const key = (name: string, over: Partial<SlotKey> = {}): SlotKey => ({
  ...{ namespace: 'shop', name, incarnation: '0a1b2c3d' },
  ...over,
})

const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?$/)
const name = fc.oneof(
  fc.array(label, { minLength: 1, maxLength: 3 }).map(parts => parts.join('.')),
  fc.tuple(label, fc.nat(20)).map(([base, number]) => `${base}-${number}`),
  fc.tuple(label, fc.nat(20)).map(([base, number]) => `${base}.${number}`),
  fc.tuple(label, fc.nat(20), label).map(([base, number, kind]) => `${base}-${number}.${kind}`),
)
const keys: fc.Arbitrary<SlotKey> = fc.record({
  namespace: label,
  name,
  incarnation: fc.stringMatching(/^[0-9a-f]{8}$/),
})

it.each([
  // As in every version before.
  ['carts-0', 'shop.carts.0.0a1b2c3d'],
  ['a.b-12', 'shop.a.b.12.0a1b2c3d'],
  ['carts-0-1', 'shop.carts-0.1.0a1b2c3d'],
  // These would otherwise meet the names above.
  ['carts.0', 'shop._carts.0.0a1b2c3d'],
  ['carts-0.kind', 'shop._carts-0.kind.0a1b2c3d'],
  ['carts-00', 'shop._carts-00.0a1b2c3d'],
  ['carts--0', 'shop._carts--0.0a1b2c3d'],
  ['carts', 'shop._carts.0a1b2c3d'],
])('the slot %s is written as %s', (name, text) => {
  expect(formatSlotKey(key(name))).toBe(text)
  expect(parseSlotKey(text)).toEqual(key(name))
})

it('every slot is read as it was written, as text and as JSON', () => {
  fc.assert(
    fc.property(keys, it => {
      expect(parseSlotKey(formatSlotKey(it) ?? '')).toEqual(it)
      expect(slotKeyIn({ ...slotFieldsOf(it) })).toEqual(it)
    }),
  )
})

it('distinct slots have distinct texts', () => {
  fc.assert(
    fc.property(keys, keys, (a, b) => {
      expect(formatSlotKey(a) === formatSlotKey(b)).toBe(
        JSON.stringify(slotFieldsOf(a)) === JSON.stringify(slotFieldsOf(b)),
      )
    }),
  )
})

it.each([
  ['a way up', key('..')],
  ['a path', key('a/b-0')],
  ['a path below another', key('../x-0')],
  ['two dots', key('a..b-0')],
  ['a dot in front', key('.a-0')],
  ['a dash behind', key('a-')],
  ['a capital', key('A-0')],
  ['a mark of ours', key('_a')],
  ['an end of line', key('a-0\n')],
  ['no name', key('')],
  ['a name that is too long', key(`${'a'.repeat(240)}-0`)],
  ['a namespace with a dot', key('a-0', { namespace: 'shop.x' })],
  ['another incarnation', key('a-0', { incarnation: '0A1B2C3D' })],
])('%s is no slot', (_, it) => {
  expect(formatSlotKey(it)).toBeUndefined()
  expect(slotKeyIn({ ...it })).toBeUndefined()
})

it.each([
  'shop._carts-0.0a1b2c3d',
  'shop.carts.00.0a1b2c3d',
  'shop.carts.0a1b2c3d',
  'shop.carts-.0.0a1b2c3d',
  'shop.carts..0.0a1b2c3d',
  'shop._carts/0.0a1b2c3d',
  'shop.carts.0.0a1b2c3d.',
  '.draft-0707070707070707',
])('%s is no text of a slot', text => {
  expect(parseSlotKey(text)).toBeUndefined()
})

it('JSON of the version before is read, and both forms together if they name one slot', () => {
  const before = { namespace: 'shop', set: 'carts', slot: 0, life: '0a1b2c3d' }
  expect(slotKeyIn(before)).toEqual(key('carts-0'))
  expect(slotFieldsOf(key('carts-0'))).toEqual({ ...before, name: 'carts-0', incarnation: '0a1b2c3d' })
  expect(slotFieldsOf(key('carts-0.kind'))).toEqual(key('carts-0.kind'))
  for (const forged of [
    { ...before, slot: -1 },
    { ...before, slot: 0.5 },
    { ...before, slot: '0' },
    { ...before, set: 'a-' },
    { ...before, set: '../x' },
    { ...before, life: 7 },
    { ...before, ...key('carts-1') },
    { ...before, ...key('carts-0', { incarnation: 'ffffffff' }) },
    { ...before, ...key('carts-0.kind') },
    { ...before, name: 'carts-0' },
    { namespace: 'shop', set: 'carts', slot: 0 },
    {},
  ])
    expect(slotKeyIn(forged), JSON.stringify(forged)).toBeUndefined()
})

it('the number of a name is what follows its last dash', () => {
  expect(splitNumber('web-2')).toEqual({ base: 'web', number: 2 })
  for (const none of ['web', 'web-', 'web-02', 'web--2', 'web.2', 'web-2.kind', 'web-1234567890'])
    expect(splitNumber(none)).toBeUndefined()
})
