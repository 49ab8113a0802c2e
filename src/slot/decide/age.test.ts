import { describe, expect, it } from 'vitest'
import { isNewerTold, newestTold, stepsBehind, type Told } from './age.ts'

const told = (epoch: number | undefined, generation: number, takenAt = 0): Told => ({
  ...(epoch !== undefined && { epoch }),
  generation,
  takenAt,
})

describe('which memory is newer', () => {
  it('is not for the clocks of nodes to say', () => {
    // Saved in epoch 1 on a node whose clock is two minutes ahead.
    const ahead = told(1, 57, 120_000)
    const present = told(2, 58, 0)
    expect([ahead, present].sort(newestTold)).toEqual([present, ahead])
    expect(isNewerTold(ahead, present)).toBe(false)
    expect([told(2, 58), told(2, 60)].sort(newestTold)[0]?.generation).toBe(60)
  })

  it('an agent of an earlier version tells no epoch, and its clock is all there is', () => {
    const old = told(undefined, 57, 5_000)
    expect(isNewerTold(old, told(1, 56, 4_000))).toBe(true)
    expect(isNewerTold(told(1, 56, 4_000), old)).toBe(false)
    expect([old, told(1, 1, 0)].sort(newestTold)[1]).toEqual(old)
  })

  it('the generation that may just be on its way is not missed; two are, and so is an epoch', () => {
    expect(stepsBehind(told(2, 60), told(2, 60), 3_000)).toBe(0)
    expect(stepsBehind(told(2, 59), told(2, 60), 3_000)).toBe(0)
    expect(stepsBehind(told(2, 58), told(2, 60), 3_000)).toBe(1)
    expect(stepsBehind(told(2, 60), told(2, 58), 3_000)).toBe(0)
    expect(stepsBehind(told(1, 60), told(2, 60), 3_000)).toBe(1)
    expect(stepsBehind(told(1, 61), told(2, 60), 3_000)).toBe(1)
  })

  it('the one before the newest is missed if more than an interval lies between them', () => {
    const before = told(2, 59, 10_000)
    expect(stepsBehind(before, told(2, 60, 13_000), 3_000)).toBe(0)
    expect(stepsBehind(before, told(2, 60, 14_500), 3_000)).toBe(0)
    expect(stepsBehind(before, told(2, 60, 14_501), 3_000)).toBe(1)
    expect(stepsBehind(before, told(2, 62, 19_000), 3_000)).toBe(3)
    // One of the times is unknown.
    expect(stepsBehind(before, told(2, 60, 0), 3_000)).toBe(0)
    expect(stepsBehind(told(2, 59, 0), told(2, 60, 14_501), 3_000)).toBe(0)
  })
})
