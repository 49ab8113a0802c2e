import { describe, expect, it } from 'vitest'
import { isPeerAddress, nodeBehind } from './known-peers.ts'

const report = (name: string, fingerprint: string, address: string) => ({
  metadata: { name, uid: name, resourceVersion: '1' },
  status: { fingerprint, address },
})
const n1 = report('n1', 'a', '10.0.0.1:9443')
const n2 = report('n2', 'b', '[fd00::2]:9443')
const none = { metadata: n1.metadata }

describe('who connects', () => {
  it('is the node whose report has this key and this address', () => {
    expect(nodeBehind([none, n1, n2], { fingerprint: 'a', address: '10.0.0.1' })).toBe('n1')
    expect(nodeBehind([n1, n2], { fingerprint: 'b', address: 'fd00::2' })).toBe('n2')
    expect(nodeBehind([n1, n2], { fingerprint: 'c', address: '10.0.0.1' })).toBeUndefined()
  })

  it('is nobody who has the key of a node at another place', () => {
    expect(nodeBehind([n1, n2], { fingerprint: 'a', address: '10.0.0.9' })).toBeUndefined()
    expect(nodeBehind([n1, n2], { fingerprint: 'a', address: 'fd00::2' })).toBeUndefined()
  })

  it('is nobody where two reports have one key', () => {
    const thief = report('x', 'a', '10.0.0.9:9443')
    for (const reports of [
      [n1, thief],
      [thief, n1],
    ])
      for (const address of ['10.0.0.1', '10.0.0.9'])
        expect(nodeBehind(reports, { fingerprint: 'a', address })).toBeUndefined()
  })

  it('comes from an address that some report has', () => {
    expect(isPeerAddress([none, n1, n2], '10.0.0.1')).toBe(true)
    expect(isPeerAddress([none, n1, n2], '10.0.0.9')).toBe(false)
  })
})
