/** Forms that the version before has written on nodes, as it wrote them. These tests can go with the support for it. */
import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import { seededRandom } from '../kube/random.ts'
import { createGenerationDisk } from './disk/disk.ts'
import { deriveKey } from './disk/generation-key.ts'
import { fieldsOf, formatManifest, parseManifest } from './manifest.ts'
import { createSigner, signerOf } from './signature.ts'
import { createGenerationStore } from './store.ts'
import { putFiles, slotKey } from './testing/generation.ts'

const text = String.raw`{"version":1,"slot":{"namespace":"shop","set":"carts","slot":0,"life":"0a1b2c3d"},"epoch":1,"generation":1,"source":{"pod":"carts-0123456789ab","podUid":"8f2f5e9c-7d0e-4f57-a3a6-2b8d8f2c7f01","node":"node-a"},"takenAt":"2030-01-01T00:00:00.000000Z","frozenSeconds":0.012,"skewSeconds":0.0004,"criu":"4.2.1","kernel":"6.12.0","architecture":"x86_64","restoreHash":"0123456789abcdef","containers":[],"volumes":[],"files":[{"path":"a","size":5,"sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}],"bytes":5,"signed":{"text":"{\"version\":1,\"slot\":{\"namespace\":\"shop\",\"set\":\"carts\",\"slot\":0,\"life\":\"0a1b2c3d\"},\"epoch\":1,\"generation\":1,\"source\":{\"pod\":\"carts-0123456789ab\",\"podUid\":\"8f2f5e9c-7d0e-4f57-a3a6-2b8d8f2c7f01\",\"node\":\"node-a\"},\"takenAt\":\"2030-01-01T00:00:00.000000Z\",\"frozenSeconds\":0.012,\"skewSeconds\":0.0004,\"criu\":\"4.2.1\",\"kernel\":\"6.12.0\",\"architecture\":\"x86_64\",\"restoreHash\":\"0123456789abcdef\",\"containers\":[],\"volumes\":[],\"files\":[{\"path\":\"a\",\"size\":5,\"sha256\":\"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\"}],\"bytes\":5}\n","key":"MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEChJaopmGFKfx3CbO+cjG23on/ReNll9pnp4agf4pHd/34DBSDVvygkC2SUUx0Xm8w+uB4OcTZ8T/R79OVUsaCw==","value":"MEQCIHpo9owoWsJ2MFHupLFg9ssbicCIqPCI1D6CXM9dUMEnAiAu1AZ5TCQhLdSEhgFNlQ9A0sO2KT5QYNKhqMd/2AuzCA=="}}`

const fingerprint = 'b8c63d02007dcb8640bc2857adbbeb348a97d46e748b0aedcec0b58fa0332fd3'

/** Generation 1 of the slot, sealed with these parts: there was none of the node. */
const parts = { agents: Buffer.alloc(32, 1), node: undefined }
const mark = '02'.repeat(32)
const sealedName = '2dabb81e397db1efb6686e6519c3571d-0707070707070707'
const sealed = [
  'VVNUREdFTjEHBwcHBwcHBwcHBwcHBwcH2xaGwW1m+mlP+ghs5WSZOFdzWsnuCG/qfTvQeJ0Eob2o2ffGqybgwPln1rJP7sql16P9',
  'oUmbpFdRo4ZPd76yFv1dvnFUGi0NN7Lp5luAWn6gtOE/vupddAacf9IvlO5LCQSEiSx+CqyJfa/f9DWoWbFyUO8D1sIyQJyf2WUK',
  '8BBH/wGqlMKN508AwlUllo06dLmktk5nVwU1+paC47jNXZenu01HekguNgxA7tn6avTw4z5tRKfaojLXWHdyglcTuFR8LxJZBjoO',
  'Wi6aN5KqloG4cZvJllG8pHE4ijDeIaAa9lLMdeg/s4Dxvla5UVkNHY9Xls6hj0roeW++j1q9xU1ABTgzGyG4oZS8YeocBDZho9oS',
  'SrqFk/YIqL27CCVixRmgEcxuKld5oBIPx3ZvIXC93tqyyYp5IZ/xMIeawO61ljScqersgjTXhBgCb3+UR4a62yaVw9YCeCwSShLw',
  'Xp540B3+bTKor8zREhH3rGHZyLYweVol5eaPttB5cRnvcyzHL7ja+PDzv1bng/XJ3vW7270KmA3JOZf1UWs5kj5jMke/ZA6XthKN',
  'ftSzRAXQ1rhAVJRQAk+ScDk+p1a2BEsYFhriD8Fgxt7pEr6XXrqUOzysAtD8/ya/i59zcJyH7iSz1YKw1zBZoSH4yR5HgEuO0M1Q',
  'sBu1ab3rpoX1e8XJPNN8X8oxWKW8v05Svwt1UhnM4Tm4rgveS0O9xp+i0gzcOouxeSbTErvBY4etmUkQCWxekR1puxzwUob7JWg7',
  'nP9kx8MFGUOxH8ocmTh8zXmEo5+K1zx4FfdOC0puJSlDYHj5wJYfI9wOW5xIHjMGn8QiEWQhlwE0KsM6Sstj6l4727vpaM2OaGSF',
  'C3mZQCkdHfW+vf/mBu8VjJz66Wi9fTNG2+YjT0QGPGQbZdyhKSFaCCdZO9s+U/pdgNtMOfCkNz6EBnQFn9xRcvycUSgyFVpmoxqD',
  'RghdpJLGB1CjaKgt866tRsxicOe/06xobgdkcQ9+C6pW/IuAlf4JuP3qQSNoCfLOTbTtUdqrY1SOOkVQLoJcQl3TvhP0LqSfHsB8',
  'trTaOvLbShR4rcXr+B8HqHCSrKCPnjgd68cdoKLC7ZEYsTsfT1NRT2ivYS4/nCvGgPqT6D2F3du9yTfUZ8o3oimG8sqnuIpoWhXQ',
  'XBulxoOPD3NLa/ZE0mhoDbe3+V/bXh+pkBu6GOjC6iR3B3Sz61b8J7wCd26aI9oXpN3JieVpWopNV5/n8aHy1H7bUSFuP+v8u3yT',
  '2Zs+tpiKZnSfgsxg7zBHp5CwJNDi8fBVPsHcoFnWx88sKzo3BiGGXeZ+0pMENLv5oRXNil4LUu4KTO8PwwUkNbddV7aG4VJs6mT3',
  '8p2SIl4RHux8qIBvNQQs4Aa/XLCEun+5mR+znP7+80Pcx140hf01jOC4kLQO7Yomqsw6C0WAS0YobDbbz86XmaUxxlWI6d4Mkg==',
].join('')

const signingKey = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString()

let root: string
const clock = createFakeClock()
beforeEach(async () => {
  root = await mkdtemp('/dev/shm/understudy-before-')
})
afterEach(() => rm(root, { recursive: true }))

const newStore = (name: string) =>
  createGenerationStore({ dir: join(root, name), budget: 1 << 20, clock, random: seededRandom(1) })

test('a manifest of the version before names its slot, and its signature holds', () => {
  const manifest = parseManifest(text)
  expect(manifest.slot).toEqual(slotKey)
  expect(signerOf(manifest)).toBe(fingerprint)
  // Written here, and read by the next node.
  expect(signerOf(parseManifest(formatManifest(manifest)))).toBe(fingerprint)
  expect(manifest.signed?.text).toContain(
    '"slot":{"namespace":"shop","set":"carts","slot":0,"life":"0a1b2c3d"}',
  )
})

test('a manifest of this version has the fields that the version before reads, under one signature', () => {
  const { signed: _, ...manifest } = parseManifest(text)
  const slot =
    '"slot":{"namespace":"shop","set":"carts","slot":0,"life":"0a1b2c3d","name":"carts-0","incarnation":"0a1b2c3d"}'
  expect(formatManifest(manifest)).toContain(slot)
  const signed = createSigner(signingKey)(manifest)
  expect(signed.signed?.text).toContain(slot)
  // The version before drops the fields that it does not know, and keeps the signed text as it is.
  const { namespace, set, slot: number, life } = fieldsOf(signed).slot
  const passedOn = JSON.stringify({ ...signed, slot: { namespace, set, slot: number, life } })
  expect(signerOf(parseManifest(passedOn))).toBe(signerOf(signed))
})

test('a directory of the version before is loaded', async () => {
  await putFiles(join(root, 'store'), {
    'shop.carts.0.0a1b2c3d/1/a': 'hello',
    'shop.carts.0.0a1b2c3d/1/manifest.json': text,
  })
  const store = newStore('store')
  expect(await store.load()).toEqual([])
  expect(store.latest(slotKey)?.manifest.generation).toBe(1)
})

test('a sealed file of the version before is found by its name, and opened', async () => {
  await putFiles(join(root, 'disk'), { [sealedName]: Buffer.from(sealed, 'base64') })
  const disk = createGenerationDisk({
    ...{ dir: join(root, 'disk'), budget: 1 << 20, share: 1, clock, random: seededRandom(1) },
    boot: { id: 'boot', uptime: () => 1_000 },
    space: async () => ({ free: 9e12, total: 10e12 }),
  })
  await disk.load()
  const key = deriveKey(parts, mark, slotKey)
  const [found] = await disk.of(slotKey, key)
  expect(found).toMatchObject({ slot: slotKey, epoch: 1, generation: 1 })
  if (found === undefined) return
  const stored = await disk.read(found, key, newStore('store'), new AbortController().signal)
  expect(signerOf(stored.manifest)).toBe(fingerprint)
})
