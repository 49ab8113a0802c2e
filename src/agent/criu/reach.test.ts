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
const reach = (...files: OpenedFile[]): Reach => ({
  ...{ files, ownNamespaces: [], ghosts: [], oldImages: [], inFlight: 0 },
})
const at = (...names: string[]): OpenedFile[] => names.map(name => ({ kind: 'regular', name, addresses: [] }))
const socket = (...addresses: string[]): OpenedFile => ({ kind: 'unix', addresses })
const NET_RAW = '2000'
const NET_ADMIN = '1000'

describe('D10.forged: what images would have a restore open', () => {
  it.each<[string, Reach, Rights]>([
    ['files by their names', reach(...at('/', '/data/a', '/a..b/...', '/x/proc/1')), holder()],
    ['names of sockets', reach(socket('run/./x.sock', '/', '//run/x')), holder()],
    ['sockets of applications', reach({ kind: 'inet', addresses: [], socketType: 1 }), holder()],
    [
      'a raw socket where it could be made',
      reach({ kind: 'inet', addresses: [], socketType: 3 }),
      holder(NET_RAW),
    ],
    ['packets where they could be had', reach({ kind: 'packet', addresses: [] }), holder(NET_RAW)],
    ['a tunnel where it could be made', reach({ kind: 'tun', addresses: [] }), holder(NET_ADMIN)],
  ])('allowed: %s', (_, of, by) => {
    expect(beyondReach(of, by)).toEqual([])
  })

  it.each<[string, Reach, RegExp]>([
    ['the root of a process', reach(...at('/proc/1/root/etc/shadow')), /file of \/proc/],
    [
      'a directory that another process has open',
      reach(...at('/proc/42/fd/200/../../etc/shadow')),
      /irregular path/,
    ],
    ['of another thread', reach(...at('/proc/self/task/3/cwd/x')), /file of \/proc/],
    ['memory of a process', reach(...at('/proc/1/mem')), /file of \/proc/],
    ['messages of the kernel', reach(...at('/proc/kmsg')), /file of \/proc/],
    ['a directory there', reach(...at('/proc')), /file of \/proc/],
    ['a name that climbs', reach(...at('/data/../../etc')), /irregular path/],
    ['a name with a part that is none', reach(...at('/./proc/1/mem')), /irregular path/],
    ['a name with an empty part', reach(...at('//proc/1/mem')), /irregular path/],
    ['a name whose first byte is left out', reach(...at('xproc/1/mem')), /irregular path/],
    ['no name', reach(...at('')), /irregular path/],
    ['what is in flight', { ...reach(), inFlight: 1 }, /unreceived/],
    ['a unix socket of the node', reach(socket('/proc/9/fd/201/../run/x.sock')), /socket with \.\. in/],
    ['a raw socket', reach({ kind: 'inet', addresses: [], socketType: 3 }), /raw socket/],
    ['packets of all', reach({ kind: 'packet', addresses: [] }), /kind packet/],
    ['a tunnel', reach({ kind: 'tun', addresses: [] }), /kind tun/],
    ['a namespace', reach({ kind: 'namespace', addresses: [] }), /kind namespace/],
    ['a terminal', reach({ kind: 'tty', addresses: [] }), /kind tty/],
    ['what CRIU takes from outside', reach({ kind: 'external', addresses: [] }), /kind external/],
    ['what nobody knows', reach({ kind: '77', addresses: [] }), /kind 77/],
    ['mounts and namespaces', { ...reach(), ownNamespaces: ['mnt', 'net'] }, /mnt namespace of its own/],
    ['images of another form', { ...reach(), oldImages: ['reg-files.img'] }, /reg-files/],
  ])('refused: %s', (_, of, fault) => {
    expect(beyondReach(of, holder()).join()).toMatch(fault)
  })
})
