import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createHeartbeatKey } from './heartbeat-key.ts'

const identity = () =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString()

describe('keys of heartbeats', () => {
  it('are the same on both nodes, and others for every other pair', () => {
    const [a, b, c] = (['a', 'b', 'c'] as const).map(node => createHeartbeatKey(node, identity()))
    if (a === undefined || b === undefined || c === undefined) throw new Error('three keys')
    const shared = a.with({ node: 'b', key: b.publicKey })
    expect(shared).toMatch(/^[0-9a-f]{64}$/)
    expect(b.with({ node: 'a', key: a.publicKey })).toBe(shared)
    expect(a.with({ node: 'c', key: c.publicKey })).not.toBe(shared)
    expect(a.with({ node: 'c', key: b.publicKey })).not.toBe(shared)
  })

  it('belong to the identity: the next agent has the same one', () => {
    const key = identity()
    expect(createHeartbeatKey('a', key).publicKey).toBe(createHeartbeatKey('a', key).publicKey)
    expect(createHeartbeatKey('a', key).publicKey).not.toBe(createHeartbeatKey('a', identity()).publicKey)
  })

  it.each([
    ['nothing', ''],
    ['too few digits', 'ab'],
    ['no hex digits', 'g'.repeat(64)],
    ['digits of another form', 'A'.repeat(64)],
    ['zero', '00'.repeat(32)],
    ['a point of low order', 'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800'],
  ])('are not derived from %s', (_, key) => {
    expect(createHeartbeatKey('a', identity()).with({ node: 'b', key })).toBeUndefined()
  })
})
