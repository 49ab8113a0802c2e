import { describe, expect, test } from 'vitest'
import { bareContainerId, cgroupDirectory, containerPart, parseCgroup } from './cgroup.ts'
import { parseMountinfo } from './mountinfo.ts'

const uid = '0a1b2c3d-1111-2222-3333-444455556666'
const under = uid.replaceAll('-', '_')
const id = 'f'.repeat(64)

describe('the part of a path that is a container', () => {
  test.each([
    ['cgroupfs', `/kubepods/burstable/pod${uid}/${id}`, true],
    ['cgroupfs, guaranteed', `/kubepods/pod${uid}/${id}`, true],
    ['a node below a group of its own', `/us-node/kubepods/besteffort/pod${uid}/${id}`, true],
    [
      'containerd with systemd',
      `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${under}.slice/cri-containerd-${id}.scope`,
      true,
    ],
    ['CRI-O', `/kubepods.slice/kubepods-pod${under}.slice/crio-${id}.scope`, true],
    [
      'CRI-O, a group that the container made',
      `/kubepods.slice/kubepods-pod${under}.slice/crio-${id}.scope/a`,
      true,
    ],
    ['Docker', `/kubepods/pod${uid}/docker-${id}.scope`, true],
    ['the monitor of CRI-O', `/kubepods.slice/kubepods-pod${under}.slice/crio-conmon-${id}.scope`, false],
    ['another container', `/kubepods/pod${uid}/${'e'.repeat(64)}`, false],
    ['another pod', `/kubepods/pod00000000-1111-2222-3333-444455556666/${id}`, false],
    ['only the pod', `/kubepods/pod${uid}`, false],
    ['the id above the pod', `/${id}/pod${uid}`, false],
    ['an id that ends alike', `/kubepods/pod${uid}/x${id}`, false],
    ['the root', '/', false],
  ])('%s', (_, path, is) => {
    const part = containerPart(path, uid, id)
    expect(part !== undefined).toBe(is)
    if (part !== undefined) expect(path.startsWith(part)).toBe(true)
  })
})

test('ids of any runtime', () => {
  expect(bareContainerId(`containerd://${id}`)).toBe(id)
  expect(bareContainerId(`cri-o://${id}`)).toBe(id)
  expect(bareContainerId(id)).toBe(id)
})

describe('the directory of a membership', () => {
  const v1 = parseMountinfo(
    [
      '31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755',
      '32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct',
      '36 31 0:33 /machine /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids',
      '40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd',
      '41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw',
    ].join('\n'),
  )
  const v2 = parseMountinfo(
    '25 24 0:22 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate',
  )
  test.each([
    [v1, '2:cpu,cpuacct:/a/b', 'cpu,cpuacct/a/b'],
    [v1, '8:pids:/machine/a', 'pids/a'],
    [v1, '8:pids:/elsewhere', undefined],
    [v1, '9:name=systemd:/a', 'systemd/a'],
    [v1, '0::/a', 'unified/a'],
    [v1, '5:devices:/a', undefined],
    [v2, '0::/kubepods.slice/x.scope', 'kubepods.slice/x.scope'],
    [v2, '0::/', ''],
    [v2, '2:cpu:/a', undefined],
  ])('%#: %s', (mounts, line, expected) => {
    const [membership] = parseCgroup(line)
    expect(membership && cgroupDirectory(mounts, membership)).toBe(expected)
  })
})

test('lines of /proc/PID/cgroup', () => {
  expect(parseCgroup('9:name=systemd:/a:b\n2:cpu,cpuacct:/\n0::/c\nrubbish\n')).toEqual([
    { controllers: [], name: 'systemd', path: '/a:b' },
    { controllers: ['cpu', 'cpuacct'], name: undefined, path: '/' },
    { controllers: [], name: undefined, path: '/c' },
  ])
})
