import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isNewer } from '../../checkpoint/manifest.ts'
import {
  formatHead,
  formatRequest,
  formatVersion,
  parseHead,
  parseRequest,
  parseVersion,
  type Version,
} from './protocol.ts'

const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?$/)
const slot = fc.record({
  namespace: label,
  name: fc
    .tuple(
      fc.array(label, { minLength: 1, maxLength: 3 }),
      fc.option(fc.integer({ min: 0, max: 999_999_999 })),
    )
    .map(([parts, number]) => (number === null ? parts.join('.') : `${parts.join('.')}-${number}`)),
  incarnation: fc.stringMatching(/^[0-9a-f]{8}$/),
})
const version: fc.Arbitrary<Version | undefined> = fc.option(
  fc.record({
    epoch: fc.integer({ min: 0, max: 10 ** 14 }),
    generation: fc.integer({ min: 1, max: 10 ** 14 }),
  }),
  { nil: undefined },
)

describe('a request', () => {
  test('is read as it was written', () => {
    fc.assert(
      fc.property(slot, version, version, (key, after, base) => {
        const request = { slot: key, after, base }
        expect(parseRequest(formatRequest(request))).toEqual(request)
      }),
    )
  })

  test('has the path of the version before, which reads no other; a slot without a number has its name', () => {
    const none = { after: undefined, base: undefined }
    const of = (name: string) => ({ slot: { namespace: 'shop', name, incarnation: '0a1b2c3d' }, ...none })
    const before = '/v1/generations/shop/carts/0/0a1b2c3d?after=none&base=none'
    expect(formatRequest(of('carts-0'))).toBe(before)
    expect(parseRequest(before)).toEqual(of('carts-0'))
    expect(parseRequest('/v1/generations/shop.carts.0.0a1b2c3d?after=none&base=none')).toEqual(of('carts-0'))
    const other = '/v1/generations/shop._carts-0.kind.0a1b2c3d?after=none&base=none'
    expect(formatRequest(of('carts-0.kind'))).toBe(other)
    expect(parseRequest(other)).toEqual(of('carts-0.kind'))
  })

  test('for a forged name is not sent', () => {
    for (const name of ['../x', 'a/b', 'a..b', 'a?after=1.1', ''])
      expect(() =>
        formatRequest({
          slot: { namespace: 'shop', name, incarnation: '0a1b2c3d' },
          after: undefined,
          base: undefined,
        }),
      ).toThrow(expect.objectContaining({ code: 'BadManifest' }))
  })

  const good = '/v1/generations/shop/carts/0/0a1b2c3d?after=none&base=none'
  test.each([
    ['', '/'],
    ['another version', good.replace('v1', 'v2')],
    ['a way up', good.replace('shop', '..')],
    ['an escaped way up', good.replace('shop', '%2e%2e')],
    ['an escaped slash', good.replace('carts', 'a%2fb')],
    ['a namespace that brings a set along', good.replace('shop/carts', 'shop.x/carts')],
    ['a life that is too short', good.replace('0a1b2c3d', '0a1b2c3')],
    ['a number with a zero in front', good.replace('/0/', '/00/')],
    ['a name in two forms', good.replace('shop/carts/0/', 'shop._carts-0.')],
    ['a name with a way up', good.replace('shop/carts/0/', 'shop._../x.')],
    ['no query', good.replace(/\?.*/, '')],
    ['more query', `${good}&base=1.1`],
    ['a generation 0', good.replace('after=none', 'after=1.0')],
    ['a number that is too long', good.replace('after=none', `after=1.${'9'.repeat(16)}`)],
    ['an end that is not its end', `${good}\n`],
  ])('%s is none', (_, path) => {
    expect(parseRequest(good)).toBeDefined()
    expect(parseRequest(path)).toBeUndefined()
  })

  test('whatever is read as one can be written as one', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.nat(0xff).map(unit => String.fromCharCode(unit)) }),
        fc.string(),
        (a, b) => {
          const request = parseRequest(`/v1/generations/${a}/carts/0/0a1b2c3d?after=none&base=${b}`)
          if (request) expect(parseRequest(formatRequest(request))).toEqual(request)
        },
      ),
    )
  })
})

describe('a version', () => {
  test('is newer in a later epoch, whatever its number', () => {
    expect(isNewer({ epoch: 2, generation: 1 }, { epoch: 1, generation: 9 })).toBe(true)
    expect(isNewer({ epoch: 1, generation: 9 }, { epoch: 2, generation: 1 })).toBe(false)
    expect(isNewer({ epoch: 1, generation: 2 }, { epoch: 1, generation: 2 })).toBe(false)
    expect(isNewer({ epoch: 1, generation: 3 }, { epoch: 1, generation: 2 })).toBe(true)
    expect(isNewer({ epoch: 0, generation: 1 }, undefined)).toBe(true)
  })

  test('is read as it was written', () => {
    fc.assert(
      fc.property(version, it => {
        expect(parseVersion(formatVersion(it))).toEqual({ version: it })
      }),
    )
  })
})

describe('the head of an answer', () => {
  test('is read as it was written', () => {
    const head = { version: { epoch: 1, generation: 2 }, base: { epoch: 0, generation: 1 }, ageMs: 17 }
    expect(parseHead(formatHead(head))).toEqual(head)
    expect(parseHead(formatHead({ ...head, base: undefined, ageMs: -3 }))).toEqual({
      ...head,
      base: undefined,
      ageMs: 0,
    })
  })

  test.each(['understudy-version', 'understudy-base', 'understudy-age-ms'])('without %s it is none', name => {
    const head = formatHead({ version: { epoch: 1, generation: 2 }, base: undefined, ageMs: 1 })
    expect(parseHead(head)).toBeDefined()
    expect(parseHead({ ...head, [name]: undefined })).toBeUndefined()
    expect(parseHead({ ...head, [name]: '-1' })).toBeUndefined()
    expect(parseHead({ ...head, [name]: ['1.1', '1.1'] })).toBeUndefined()
  })
})
