import { expect, it } from 'vitest'
import { programmedAt } from './nft-monitor.ts'

it('finds the first change that names exactly this address', () => {
  const lines = [
    { at: 1, text: 'add element ip kube-proxy endpoints { 10.1.1.12 : x }' },
    { at: 2, text: 'add chain ip kube-proxy endpoint-AB-web__10.1.1.1/8080' },
    { at: 3, text: 'add rule ip kube-proxy endpoint-AB-web__10.1.1.1/8080 dnat to 10.1.1.1:8080' },
  ]
  expect(programmedAt(lines, '10.1.1.1')).toBe(2)
  expect(programmedAt(lines, '10.1.1.2')).toBeUndefined()
})
