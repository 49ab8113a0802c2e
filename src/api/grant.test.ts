import { describe, expect, test } from 'vitest'
import { formatGrant, type Grant, grantOverAnnotation, grantsOver, parseGrant } from './grant.ts'

const of = { incarnation: 'abcd1234', epoch: 4 }
const grant: Grant = { number: 7, heir: { uid: 'uid-1', node: 'node-1.example.com' }, isRevoked: false }

describe('the grant in the Lease of a slot', () => {
  test.each([
    ['with an heir', grant],
    ['revoked', { ...grant, isRevoked: true }],
    ['announced', { ...grant, isAnnounced: true as const }],
    ['without an heir', { number: 7, isRevoked: false }],
  ])('what is written is read again: %s', (_, written) => {
    expect(parseGrant(formatGrant(written, of), of)).toEqual(written)
  })

  test.each([
    ['nothing', undefined],
    ['no JSON', '{'],
    ['no object', '[]'],
    ['another format', JSON.stringify({ v: 3, of: 'abcd1234/4', ...grant })],
    ['no number', formatGrant({ ...grant, number: 0 }, of)],
    ['a number that is too large', formatGrant({ ...grant, number: 2 ** 53 }, of)],
    ['a uid with another form', formatGrant({ ...grant, heir: { uid: 'a b', node: 'n' } }, of)],
    ['a node with another form', formatGrant({ ...grant, heir: { uid: 'a', node: 'n/1' } }, of)],
    ['long text', `${formatGrant(grant, of)}${' '.repeat(2_000)}`],
  ])('what is no grant is not read: %s', (_, text) => {
    expect(parseGrant(text, of)).toBeUndefined()
  })

  test.each([
    { ...of, epoch: 5 },
    { ...of, incarnation: 'dcba4321' },
  ])('what an operator before grants has left for another epoch is revoked: %j', another => {
    expect(parseGrant(formatGrant(grant, of), another)).toEqual({ ...grant, isRevoked: true })
  })

  test('an agent that knows no announced grants does not read one: it would use it untold', () => {
    expect(JSON.parse(formatGrant({ ...grant, isAnnounced: true }, of))).toMatchObject({ v: 2 })
    expect(JSON.parse(formatGrant(grant, of))).toMatchObject({ v: 1 })
  })

  test('the word that ends grants is of one incarnation, and no other text counts', () => {
    const [mine, other] = ['abcd1234', 'dcba4321'].map(grantOverAnnotation)
    expect(grantsOver({ [String(mine)]: '7', [String(other)]: '9' }, of.incarnation)).toBe(7)
    for (const text of ['', '-1', '1.5', 'x', '0'])
      expect(grantsOver({ [String(mine)]: text }, of.incarnation)).toBe(0)
    expect(grantsOver(undefined, of.incarnation)).toBe(0)
  })
})
