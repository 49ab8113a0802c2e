import { describe, expect, test } from 'vitest'
import { parseStatus } from '../container/process.ts'
import { excess, type Rights, rightsOf } from './rights.ts'

const ids = (id: number) => ({ real: id, effective: id, saved: id, filesystem: id })
const sets = (hex: string, inheritable = '0') => ({
  inheritable,
  permitted: hex,
  effective: hex,
  bounding: hex,
  ambient: '0',
})
/** Default capabilities of a root container: 14, SETUID and SETGID among them. */
const standard = '00000000a80425fb'
const root: Rights = {
  uids: ids(0),
  gids: ids(0),
  groups: [],
  capabilities: sets(standard),
  noNewPrivileges: false,
  seccomp: 'filter',
}
const user: Rights = {
  ...root,
  uids: ids(1000),
  gids: ids(1000),
  groups: [2000],
  capabilities: { ...sets('0'), bounding: standard },
  noNewPrivileges: true,
}

describe('rights beyond those of the holder', () => {
  test.each<[string, Rights, Rights, string[]]>([
    ['the same', root, root, []],
    ['the same user', user, user, []],
    ['root that became a user', { ...user, noNewPrivileges: false }, root, []],
    ['a user that became another', { ...user, uids: ids(0) }, user, ['uid 0']],
    ['a saved uid only', { ...user, uids: { ...ids(1000), saved: 0 } }, user, ['uid 0']],
    ['a gid', { ...user, gids: { ...ids(1000), filesystem: 5 } }, user, ['gid 5']],
    ['a group more', { ...user, groups: [2000, 6] }, user, ['groups 6']],
    ['a group fewer', { ...user, groups: [] }, user, []],
    [
      'a capability more',
      { ...root, capabilities: { ...sets(standard), effective: '00000000a82425fb' } },
      root,
      ['effective capabilities 200000'],
    ],
    [
      'a wider bounding set',
      { ...user, capabilities: { ...user.capabilities, bounding: '000001ffffffffff' } },
      user,
      ['bounding capabilities 1ff57fbda04'],
    ],
    [
      'within the bounding set, where a program may raise it',
      { ...user, noNewPrivileges: false, capabilities: sets('400') },
      { ...user, noNewPrivileges: false },
      [],
    ],
    [
      'within the bounding set, where nothing may',
      { ...user, capabilities: { ...user.capabilities, permitted: '400' } },
      user,
      ['permitted capabilities 400'],
    ],
    ['new privileges', { ...user, noNewPrivileges: false }, user, ['new privileges allowed']],
    ['fewer privileges', { ...root, noNewPrivileges: true }, root, []],
    ['no seccomp', { ...root, seccomp: 'disabled' }, root, ['seccomp disabled instead of filter']],
    ['seccomp where there was none', root, { ...root, seccomp: 'disabled' }, []],
  ])('%s', (_, held, holder, expected) => {
    expect(excess(held, holder)).toEqual(expected)
  })

  test.each<[string, string | undefined, string]>([
    ['AppArmor that enforces', 'cri-containerd.apparmor.d', 'cri-containerd.apparmor.d (enforce)\n'],
    ['AppArmor that complains', 'docker-default', 'docker-default (complain)\n'],
    ['AppArmor with a mode of tomorrow', 'a', 'a (prompt)\n'],
    ['AppArmor 4, where runtimes have a profile', undefined, 'runc (unconfined)\n'],
    ['AppArmor without a profile', undefined, 'unconfined\n'],
    ['a stack', 'a//&:n:b', 'a//&:n:b (mixed)\n'],
    ['SELinux', 'system_u:system_r:container_t:s0:c1,c2', 'system_u:system_r:container_t:s0:c1,c2\0'],
    ['nothing', undefined, ''],
  ])('labels as the kernel writes them: %s', (_, profile, current) => {
    expect(rightsOf(parseStatus(''), current).lsmProfile).toBe(profile)
  })

  test('what CRIU says of a label is the same', () => {
    const label = (current: string): Rights => {
      const { lsmProfile } = rightsOf(parseStatus(''), current)
      return { ...user, ...(lsmProfile !== undefined && { lsmProfile }) }
    }
    // CRIU keeps the first word.
    expect(excess({ ...user, lsmProfile: 'runc' }, label('runc (unconfined)'))).toEqual([])
    expect(excess(label('runc (unconfined)'), label('runc (unconfined)'))).toEqual([])
    expect(excess({ ...user, lsmProfile: 'runc' }, label('runc (enforce)'))).toEqual([])
    const foreign = 'LSM profile runc instead of cri-containerd.apparmor.d'
    const confined = label('cri-containerd.apparmor.d (enforce)')
    expect(excess({ ...user, lsmProfile: 'runc' }, confined)).toEqual([foreign])
    expect(excess(label('runc (unconfined)'), confined)).toEqual([foreign.replace('runc', 'none')])
  })

  test('as /proc shows them', () => {
    const text = [
      'Uid:\t1000\t1001\t1002\t1003',
      'Gid:\t1\t2\t3\t4',
      'Groups:\t5 6 ',
      'CapInh:\t0000000000000000',
      'CapPrm:\t00000000a80425fb',
      'CapEff:\t0000000000000001',
      'CapBnd:\t000001ffffffffff',
      'CapAmb:\t0000000000000000',
      'NoNewPrivs:\t1',
      'Seccomp:\t2',
    ].join('\n')
    expect(rightsOf(parseStatus(text))).toEqual({
      uids: { real: 1000, effective: 1001, saved: 1002, filesystem: 1003 },
      gids: { real: 1, effective: 2, saved: 3, filesystem: 4 },
      groups: [5, 6],
      capabilities: {
        inheritable: '0000000000000000',
        permitted: '00000000a80425fb',
        effective: '0000000000000001',
        bounding: '000001ffffffffff',
        ambient: '0000000000000000',
      },
      noNewPrivileges: true,
      seccomp: 'filter',
    })
  })
})
