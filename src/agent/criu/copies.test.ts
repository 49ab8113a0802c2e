import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createGenerationStore, type GenerationStore } from '../../checkpoint/store.ts'
import { slotKey } from '../../checkpoint/testing/generation.ts'
import { systemClock as clock } from '../../kube/clock.ts'
import { systemRandom as random } from '../../kube/random.ts'
import { type Copies, createCopies } from './copies.ts'

const full = expect.objectContaining({ code: 'StoreFull' })

describe('D10.tmpfs: the copies that restores work with', () => {
  let dir: string
  let store: GenerationStore
  let copies: Copies
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'copies-'))
    store = createGenerationStore({ dir, budget: 1_000, share: 0.75, clock, random })
    copies = createCopies({ bytes: 100, share: 0.75, lend: store.lend })
  })
  afterEach(() => rm(dir, { recursive: true }))

  it('have room of their own, of which each namespace leaves something to others', () => {
    copies.take('a', 'greedy', 75)
    copies.take('b', 'modest', 18)
    expect(store.room).toBe(1_000)
    copies.giveBack('a')
    copies.take('c', 'greedy', 61)
    expect(store.room).toBe(1_000)
  })

  it('beyond it take from the budget of generations, and are refused where that has none', async () => {
    copies.take('a', 'greedy', 700)
    expect(store.room).toBe(300)
    expect(() => copies.take('b', 'greedy', 76)).toThrow(full)
    // A refused demand reserves nothing, and does not prevent another namespace's reservation.
    expect(store.room).toBe(300)
    copies.take('c', 'modest', 75)
    const draft = await store.begin({ ...slotKey, namespace: 'modest' }, 1, { expectedBytes: 200 })
    expect(store.room).toBe(100)
    await draft.discard()
    copies.giveBack('a')
    copies.giveBack('a')
    copies.giveBack('unknown')
    expect(store.room).toBe(1_000)
  })
})
