import { describe, expect, it } from 'vitest'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import { actions } from '../testing/decided.ts'
import { makeMemorySnapshot, makePrimary, makeUnderstudy } from '../testing/memory.ts'
import { makePod } from '../testing/snapshots.ts'

describe('backups that are none', () => {
  it('those that run the app are replaced when a set begins to keep memory', () => {
    const warm = makePod('warm', 'hotbackup')
    const s = makeMemorySnapshot({ replicas: 0, hotBackups: 1 }, [warm], [])
    expect(actions(s)).toMatchObject([
      { type: 'delete', pod: { name: 'warm' }, reason: 'Outdated' },
      { type: 'create', kind: 'hotbackup' },
    ])
  })

  it('those in which nothing can be brought back any more are replaced, and take no slot', () => {
    const primary = makePrimary('p', 0)
    const spoiled = makeUnderstudy('h', {}, { spoiled: true })
    const lease = makeLease(primary, { kept: ['n-h'] })
    const s = makeMemorySnapshot(
      { replicas: 1, hotBackups: 1 },
      [primary, spoiled],
      [makeSlot(lease, [makeCopy(lease, spoiled, 'Staged')])],
    )
    expect(actions(s)).toMatchObject([
      { type: 'delete', pod: { name: 'h' }, reason: 'Spoiled' },
      { type: 'create', kind: 'hotbackup' },
    ])
  })

  it('and those that hold the stage when it ends to', () => {
    const s = makeMemorySnapshot({ replicas: 0, hotBackups: 1, memory: undefined }, [makeUnderstudy('h')], [])
    const { memory: _, ...without } = s
    expect(actions(without)).toMatchObject([
      { type: 'delete', pod: { name: 'h' }, reason: 'Outdated' },
      { type: 'create', kind: 'hotbackup' },
    ])
  })
})
