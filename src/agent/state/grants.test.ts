import { describe, expect, it } from 'vitest'
import { silentLog } from '../../kube/log.ts'
import { grantWordOf } from '../observe/grant-word.ts'
import type { GrantRecord } from '../observe/snapshot.ts'
import { lease } from '../testing/fake/snapshots.ts'
import { createGrants } from './grants.ts'

describe('a grant that is prepared', () => {
  const before = lease({ epoch: 1, node: 'a', grant: { number: 3, isRevoked: true } })
  const heir = { name: 'h', uid: 'uid-h', node: 'b', ip: undefined }
  const record = { slot: before, epoch: 1, number: 3, role: 'Said', heir, at: 0 } as const
  const prepared = async (save: (record: GrantRecord) => Promise<void>) => {
    const grants = createGrants({
      files: { left: [], save, remove: async () => {} },
      changed: () => {},
      clock: { now: () => 0, monotonic: () => 0, sleep: async () => {} },
      log: silentLog,
    })
    grants.isAlive(before)
    await grants.write({ ...record, answer: 'Prepared' }).catch(() => undefined)
    return { grants, word: () => grantWordOf('a', before, grants.view) }
  }

  it('is neither used nor closed until its message leaves, and the next agent does not know', async () => {
    const saved: GrantRecord[] = []
    const { grants, word } = await prepared(async each => void saved.push(each))
    // This agent has read that it is revoked, but the message may still leave.
    expect(word()).toEqual({ closed: 2 })
    expect(saved.map(({ answer }) => answer)).toEqual(['Unknown'])
    grants.sent({ ...record, answer: 'Unknown' })
    expect(word()).toEqual({ closed: 3, used: 3 })
  })

  it('is over if it cannot be noted', async () => {
    const { word } = await prepared(async () => {
      throw new Error('no space')
    })
    expect(word()).toEqual({ closed: 3 })
  })
})

describe('an accepted grant counts for a short while without the API server', () => {
  const accepted = async () => {
    const time = { monotonic: 1_000, wall: 1_000_000 }
    const grants = createGrants({
      files: { left: [], save: async () => {}, remove: async () => {} },
      changed: () => {},
      clock: { now: () => time.wall, monotonic: () => time.monotonic, sleep: async () => {} },
      log: silentLog,
    })
    const before = lease({ epoch: 1 })
    const heir = { name: 'h', uid: 'uid-h', node: 'b', ip: undefined }
    await grants.write({
      slot: before,
      epoch: 1,
      number: 3,
      role: 'Asked',
      answer: 'Accepted',
      heir,
      at: time.wall,
    })
    const next = lease({ epoch: 2, holder: { name: 'h', uid: 'uid-h' } })
    return { time, isFresh: () => grants.isFresh(next) }
  }

  it.each([
    ['on both clocks', 19_000, 19_000, true],
    ['that is over', 20_000, 20_000, false],
    ['that is over by the wall clock: the machine was suspended', 100, 60_000, false],
    ['unless the wall clock was set back: how long the machine was suspended is unknown', 100, -5_000, false],
  ])('%s', async (_, monotonic, wall, isFresh) => {
    const { time, ...it } = await accepted()
    expect(it.isFresh()).toBe(true)
    time.monotonic += monotonic
    time.wall += wall
    expect(it.isFresh()).toBe(isFresh)
  })
})
