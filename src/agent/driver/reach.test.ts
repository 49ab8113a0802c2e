import { describe, expect, it } from 'vitest'
import type { OpenedFile, Reach } from '../../checkpoint/images/reach.ts'
import { beyondReach } from './reach.ts'
import type { Rights } from './rights.ts'

const ids = { real: 1000, effective: 1000, saved: 1000, filesystem: 1000 }
const caps = (permitted: string) => ({
  ...{ inheritable: '0', permitted, effective: permitted, bounding: permitted, ambient: '0' },
})
const holder = (permitted = '0'): Rights => ({
  ...{ uids: ids, gids: ids, groups: [], noNewPrivileges: true, seccomp: 'filter' },
  capabilities: caps(permitted),
})
const reach = (...files: OpenedFile[]): Reach => ({ files, ownNamespaces: [], oldImages: [] })
const at = (...paths: string[]): OpenedFile => ({ kind: 'regular', paths })
const NET_RAW = '2000'
const NET_ADMIN = '1000'

describe('D10.forged: what images would have a restore open', () => {
  it.each<[string, Reach, Rights]>([
    ['files by their names', reach(at('/data/a'), at('/proc/1/status'), at('/a..b/...')), holder()],
    ['sockets of applications', reach({ kind: 'inet', paths: [], socketType: 1 }), holder()],
    [
      'a raw socket where it could be made',
      reach({ kind: 'inet', paths: [], socketType: 3 }),
      holder(NET_RAW),
    ],
    ['packets where they could be had', reach({ kind: 'packet', paths: [] }), holder(NET_RAW)],
    ['a tunnel where it could be made', reach({ kind: 'tun', paths: [] }), holder(NET_ADMIN)],
  ])('allowed: %s', (_, of, by) => {
    expect(beyondReach(of, by)).toEqual([])
  })

  it.each<[string, Reach, RegExp]>([
    ['the root of a process', reach(at('/proc/1/root/etc/shadow')), /way around/],
    [
      'a directory that another process has open',
      reach(at('/proc/42/fd/200/../../etc/shadow')),
      /way around/,
    ],
    ['of another thread', reach(at('/proc/self/task/3/cwd/x')), /way around/],
    ['a name that climbs', reach(at('/data/../../etc')), /way around/],
    [
      'a unix socket of the node',
      reach({ kind: 'unix', paths: ['/proc/9/fd/201/../run/x.sock'] }),
      /way around/,
    ],
    ['a raw socket', reach({ kind: 'inet', paths: [], socketType: 3 }), /raw socket/],
    ['packets of all', reach({ kind: 'packet', paths: [] }), /kind packet/],
    ['a tunnel', reach({ kind: 'tun', paths: [] }), /kind tun/],
    ['a namespace', reach({ kind: 'namespace', paths: [] }), /kind namespace/],
    ['a terminal', reach({ kind: 'tty', paths: [] }), /kind tty/],
    ['what CRIU takes from outside', reach({ kind: 'external', paths: [] }), /kind external/],
    ['what nobody knows', reach({ kind: '77', paths: [] }), /kind 77/],
    ['mounts and namespaces', { ...reach(), ownNamespaces: ['mnt', 'net'] }, /mnt namespace of its own/],
    ['images of another form', { ...reach(), oldImages: ['reg-files.img'] }, /reg-files/],
  ])('refused: %s', (_, of, fault) => {
    expect(beyondReach(of, holder()).join()).toMatch(fault)
  })
})
