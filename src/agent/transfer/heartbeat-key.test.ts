import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { fingerprintOf } from './certificate.ts'
import { createHeartbeatKey } from './heartbeat-key.ts'

const made = (namedCurve: string) =>
  generateKeyPairSync('ec', { namedCurve }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

/** A node, and what its report says of its key. */
function nodeOf(node: string, identity = made('P-256')) {
  const key = createHeartbeatKey(node, identity)
  const told = { node, key: key.publicKey, fingerprint: fingerprintOf(createPrivateKey(identity)) }
  return { ...key, told }
}

describe('keys of heartbeats', () => {
  it('are the same on both nodes, and others for every other pair', () => {
    const [a, b, c] = [nodeOf('a'), nodeOf('b'), nodeOf('c')]
    const shared = a.with(b.told)
    expect(shared).toMatch(/^[0-9a-f]{64}$/)
    expect(b.with(a.told)).toBe(shared)
    expect(a.with(c.told)).not.toBe(shared)
    expect(a.with({ ...b.told, node: 'c' })).not.toBe(shared)
  })

  it('belong to the identity: the next agent has the same one', () => {
    const identity = made('P-256')
    expect(nodeOf('a', identity).publicKey).toBe(nodeOf('a', identity).publicKey)
    expect(nodeOf('a').publicKey).not.toBe(nodeOf('a').publicKey)
  })

  it('D10.heartbeats: another key than the fingerprint says counts for nothing: a stolen token gives no voice', () => {
    const [a, b, thief] = [nodeOf('a'), nodeOf('b'), nodeOf('b')]
    expect(a.with({ ...b.told, key: thief.publicKey })).toBeUndefined()
    expect(a.with({ ...b.told, fingerprint: thief.told.fingerprint })).toBeUndefined()
  })

  it.each([
    ['nothing', ''],
    ['too few digits', 'abc'],
    ['no hex digits', 'g'.repeat(182)],
    ['no key', 'ab'.repeat(91)],
    ['more than a key', 'ab'.repeat(10_000)],
  ])('are not derived from %s', (_, key) => {
    expect(nodeOf('a').with({ ...nodeOf('b').told, key })).toBeUndefined()
  })

  it('are not derived from a key on another curve', () => {
    expect(nodeOf('a').with(nodeOf('b', made('P-384')).told)).toBeUndefined()
  })
})
