import { describe, expect, it } from 'vitest'
import { gateContainerName } from '../../src/api/gate.ts'
import { allReady, isInPlace } from './state.ts'
import { podOf } from './testing/pods.ts'

const ready = { conditions: [{ type: 'Ready', status: 'True' }] } as const
const gate = (started: boolean) =>
  ({ initContainerStatuses: [{ name: gateContainerName, started, state: { running: {} } }] }) as const
const gated = gate(false)
const opened = gate(true)

const primary = podOf('p', 'primary', ready)
const hot = podOf('h', 'hotbackup', ready)
const cold = podOf('c', 'coldbackup', gated)
const wanted = { primary: 1, hotbackup: 1, coldbackup: 1 }

describe('isInPlace', () => {
  it('holds when numbers are exact, primaries and hot are Ready and cold wait at their gate', () => {
    expect(isInPlace([primary, hot, cold], wanted)).toBe(true)
  })

  it.each([
    ['one is missing', [primary, hot]],
    ['one is too many', [primary, hot, cold, podOf('p2', 'primary', ready)]],
    ['a primary is not Ready', [podOf('p', 'primary', {}), hot, cold]],
    ['a hot backup is not Ready', [primary, podOf('h', 'hotbackup', opened), cold]],
    ['a gate has not started', [primary, hot, podOf('c', 'coldbackup', {})]],
    ['a gate has opened', [primary, hot, podOf('c', 'coldbackup', opened)]],
    ['a label is nobody knows what', [primary, hot, cold, podOf('x', 'spare', ready)]],
    ['the only primary is being deleted', [podOf('p', 'primary', ready, { leaving: true }), hot, cold]],
  ])('does not hold when %s', (_, pods) => {
    expect(isInPlace(pods, wanted)).toBe(false)
  })

  it('does not count pods that are being deleted', () => {
    expect(isInPlace([primary, hot, cold, podOf('old', 'primary', ready, { leaving: true })], wanted)).toBe(
      true,
    )
  })
})

describe('allReady', () => {
  it('wants the exact number, all of them Ready, the leaving ones not counted', () => {
    const leaving = podOf('q', 'primary', {}, { leaving: true })
    expect(allReady([primary, hot, leaving], 2)).toBe(true)
    expect(allReady([primary, hot], 1)).toBe(false)
    expect(allReady([primary, podOf('r', 'primary', {})], 2)).toBe(false)
  })
})
