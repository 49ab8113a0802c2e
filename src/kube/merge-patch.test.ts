import { expect, it } from 'vitest'
import { mergePatch } from './merge-patch.ts'

it('deletes fields that are lacking now, also of nested objects, and replaces lists', () => {
  const before = { a: 1, gone: 2, nested: { name: 'x', uid: 'u' }, list: [{ a: 1, b: 2 }], whole: { a: 1 } }
  const after = { a: 3, nested: { name: 'y', uid: undefined }, list: [{ a: 1 }], fresh: { b: { c: 1 } } }
  expect(mergePatch(before, after)).toEqual({
    ...{ a: 3, gone: null, nested: { name: 'y', uid: null }, list: [{ a: 1 }], whole: null },
    fresh: { b: { c: 1 } },
  })
})

it('names all fields where nothing is known of the object', () => {
  expect(mergePatch(undefined, { a: 1, b: undefined })).toEqual({ a: 1 })
  expect(mergePatch({ a: 'text' }, { a: { b: 1 } })).toEqual({ a: { b: 1 } })
})
