import { describe, expect, it } from 'vitest'
import { createFencing } from './fencing.ts'

function stand() {
  const fenced: unknown[] = []
  const fencing = createFencing({ changed: () => undefined, onFenced: (...told) => void fenced.push(told) })
  return { fencing, fenced }
}

describe('what the sentinel has promised and stated', () => {
  it('a change is told once, although the sentinel repeats it', () => {
    const { fencing, fenced } = stand()
    for (const type of ['serves', 'stops', 'stops', 'alone', 'serves', 'serves'] as const)
      fencing.onNews({ type, name: 'p', term: 4 })
    expect(fenced).toEqual([
      ['p', true],
      ['p', false],
    ])
    expect([...fencing.view.guarded]).toEqual([['p', { term: 4 }]])
  })

  it('stays acknowledged in the same term, and not in the next one', () => {
    const { fencing } = stand()
    fencing.acknowledged('p', 's', { term: 4, version: 2 })
    fencing.onNews({ type: 'serves', name: 'p', term: 4 })
    expect(fencing.view.guarded.get('p')).toEqual({ term: 4, acknowledged: { slot: 's', version: 2 } })
    fencing.onNews({ type: 'serves', name: 'p', term: 5 })
    expect(fencing.view.guarded.get('p')).toEqual({ term: 5 })
  })

  it('keeps the latest statement, and those of slots that exist', () => {
    const { fencing } = stand()
    for (const term of [3, 2]) fencing.onNews({ type: 'silent', slot: 's', term })
    fencing.votes('s', false)
    expect([...fencing.view.silent]).toEqual([['s', 3]])
    fencing.keepOnly(new Set())
    expect([...fencing.view.silent]).toEqual([])
  })

  it('D8.suspect: keeps a suspicion until a heartbeat, the statement, or the end of the vote', () => {
    const { fencing } = stand()
    const suspects = (slot: string) => fencing.onNews({ type: 'suspect', slot, term: 3 })
    for (const slot of ['s', 't', 'u', 'v', 'w']) suspects(slot)
    fencing.onNews({ type: 'trust', slot: 't', term: 3 })
    fencing.onNews({ type: 'silent', slot: 'u', term: 3 })
    fencing.votes('v', false)
    fencing.keepOnly(new Set(['s', 't', 'u', 'v']))
    expect([...fencing.view.suspects]).toEqual([['s', 3]])
  })

  it('is nothing for a sentinel in another run; the first run is known late', () => {
    const { fencing, fenced } = stand()
    fencing.onNews({ type: 'stops', name: 'p', term: 4 })
    fencing.onNews({ type: 'silent', slot: 's', term: 3 })
    fencing.peer('b', true)
    fencing.listens('first')
    expect(fencing.view.guarded.size + fencing.view.silent.size + fencing.view.peers.size).toBe(3)
    fencing.listens('second')
    const { peers, guarded, votes, silent } = fencing.view
    expect([peers, guarded, fencing.view.fenced, votes, silent].map(({ size }) => size)).toEqual([
      0, 0, 0, 0, 0,
    ])
    expect(fenced).toEqual([
      ['p', true],
      ['p', false],
    ])
  })
})
