import { describe, expect, it } from 'vitest'
import { beyondMaking, bringOptions } from './could-make.ts'
import type { Rights } from './rights.ts'

/** The capabilities that runtimes give to root by default. */
const usual = 0xa80425fbn

const rights = (uid: number, permitted: bigint, groups: readonly number[] = []): Rights => {
  const ids = { real: uid, effective: uid, saved: uid, filesystem: uid }
  const none = '0'.repeat(16)
  return {
    ...{ uids: ids, gids: ids, groups: [...groups] },
    capabilities: {
      ...{ inheritable: none, ambient: none, bounding: usual.toString(16).padStart(16, '0') },
      ...{ permitted: permitted.toString(16).padStart(16, '0'), effective: none },
    },
    ...{ noNewPrivileges: false, seccomp: 'filter' },
  }
}
const root = rights(0, usual)
const user = rights(1000, 0n, [2000])

describe('D10.layer-rights: what files may give', () => {
  it.each([
    ['root of a usual container', [root], '--user any --group any --capabilities --devices'],
    [
      'a user, who may gain nothing by what others could run',
      [user],
      '--user 1000 --group 1000 --group 2000',
    ],
    ['root without capabilities', [rights(0, 0n)], '--user 0 --group 0'],
    [
      'two that write to one volume',
      [user, rights(33, 0n)],
      '--user 33 --user 1000 --group 33 --group 1000 --group 2000',
    ],
    ['a user beside root', [user, root], '--user any --group any --capabilities --devices'],
    ['nobody, where it is mounted to be read only', [], ''],
  ])('%s', (_, makers, options) => {
    expect(bringOptions(makers).join(' ')).toBe(options)
  })

  it.each([
    ['a program of root', { mode: 0o104755, uid: 0, gid: 0 }],
    ['a program of the group of root', { mode: 0o102755, uid: 1000, gid: 0 }],
    ['a character device', { mode: 0o020666, uid: 1000, gid: 1000 }],
    ['a block device', { mode: 0o060666, uid: 1000, gid: 1000 }],
  ])('a deleted file is none that a user could not have made: %s', (_, ghost) => {
    expect(beyondMaking([ghost], user)).toHaveLength(1)
    expect(beyondMaking([ghost], root)).toEqual([])
  })

  it.each([
    ['a plain file of root', { mode: 0o100644, uid: 0, gid: 0 }],
    ['a program of the user itself', { mode: 0o106755, uid: 1000, gid: 2000 }],
    ['a directory with the bits of programs', { mode: 0o043777, uid: 0, gid: 0 }],
  ])('others it may be: %s', (_, ghost) => {
    expect(beyondMaking([ghost], user)).toEqual([])
  })
})
