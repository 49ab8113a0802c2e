import { describe, expect, test } from 'vitest'
import { podAddress } from './pod-address.ts'

describe('D10.probe-host: what a pod can have as its address', () => {
  test.each(['10.0.0.1', '192.168.3.4', 'fd00::1', '2001:db8::5'])('%s is asked', address => {
    for (const from of ['node', 'pod'] as const) expect(podAddress(address, from)).toBe(address)
  })

  test.each([
    ...['0.0.0.0', '169.254.169.254', '224.0.0.1', '::', 'fe80::1', '::ffff:169.254.169.254'],
    ...['localhost', '', undefined],
  ])('%s is not', address => {
    for (const from of ['node', 'pod'] as const) expect(podAddress(address, from)).toBeUndefined()
  })

  test.each(['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1'])(
    '%s is not from the network of a node',
    address => {
      expect(podAddress(address, 'node')).toBeUndefined()
    },
  )
})
