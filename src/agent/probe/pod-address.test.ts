import { describe, expect, test } from 'vitest'
import { podAddress } from './pod-address.ts'

describe('D10.probe-host: what a pod can have as its address', () => {
  test.each(['10.0.0.1', '192.168.3.4', 'fd00::1', '2001:db8::5'])('%s is asked', address => {
    expect(podAddress(address)).toBe(address)
  })

  test.each([
    ...['127.0.0.1', '127.8.8.8', '0.0.0.0', '169.254.169.254', '224.0.0.1', '::1', '::', 'fe80::1'],
    ...['::ffff:127.0.0.1', '::ffff:169.254.169.254', 'localhost', '', undefined],
  ])('%s is not', address => {
    expect(podAddress(address)).toBeUndefined()
  })
})
