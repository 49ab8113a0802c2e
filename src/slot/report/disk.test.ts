import { expect, it } from 'vitest'
import { makeCopy, makeHolder, makeLease, makeSlot } from '../testing/slots.ts'
import { diskCaveats } from './disk.ts'

const slot = (number: number, holders: readonly string[]) =>
  makeSlot(makeLease(makeHolder(`p${number}`, number), { holders }), [])
const nodes = (troubles: Readonly<Record<string, string | undefined>>) =>
  new Map(Object.entries(troubles).map(([name, diskTrouble]) => [name, { diskTrouble }]))

it('a slot none of whose holders can write to its disk is named, with reasons and cures', () => {
  const slots = [slot(0, ['a', 'b']), slot(1, ['b', 'c']), slot(2, ['a'])]
  const caveats = diskCaveats(slots, nodes({ a: 'DiskLow', b: 'DiskFull', c: undefined }))
  expect(caveats).toMatchObject([{ reason: 'NotOnDisk' }])
  const { message } = caveats[0] ?? {}
  expect(message).toContain('slot 0, 2 is on no disk')
  expect(message).toContain('DiskLow on a: free space')
  expect(message).toContain('DiskFull on b: raise --disk-budget')
})

it('one holder that can is enough, and where nobody keeps anything there is nothing to write', () => {
  expect(diskCaveats([slot(0, ['a', 'b'])], nodes({ a: 'DiskLow' }))).toEqual([])
  expect(diskCaveats([slot(0, [])], nodes({ a: 'DiskLow' }))).toEqual([])
})

it('a long list is cut, and a reason without a cure of its own leads to the report', () => {
  const slots = Array.from({ length: 8 }, (_, i) => slot(i, ['a']))
  const [caveat] = diskCaveats(slots, nodes({ a: 'Corrupt' }))
  expect(caveat?.message).toContain('slot 0, 1, 2, 3, 4 and 3 more is on no disk')
  expect(caveat?.message).toContain('Corrupt on a: see the NodeReport')
})

it('D10.disk-share: a slot without room in the share of its namespace is named, and no other slot of that node', () => {
  const onlyHere = (number: number, diskReason?: string) => {
    const lease = makeLease(makeHolder(`p${number}`, number), { holders: ['a', 'b'] })
    const copies = ['a', 'b'].map(node =>
      makeCopy(lease, makeHolder('h', number, { node }), 'Staged', diskReason ? { diskReason } : {}),
    )
    return makeSlot(lease, copies)
  }
  const slots = [onlyHere(0), onlyHere(1, 'DiskShareFull')]
  const [caveat] = diskCaveats(slots, nodes({ a: undefined }))
  expect(caveat?.message).toContain('slot 1 is on no disk')
  expect(caveat?.message).toMatch(/DiskShareFull on a, b: .*--namespace-share/)
  // One node that writes it is enough, and what all its nodes say together counts.
  expect(diskCaveats([onlyHere(0)], nodes({ a: 'DiskLow' }))).toEqual([])
  const [both] = diskCaveats([onlyHere(1, 'DiskShareFull')], nodes({ a: 'DiskLow' }))
  expect(both?.message).toMatch(/DiskLow on a: .*DiskShareFull on b: /)
})
