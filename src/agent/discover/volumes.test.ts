import { describe, expect, test } from 'vitest'
import { hostPathOf, parseMountinfo } from './mountinfo.ts'
import { emptyDirs, mountPoints, upperDirectory } from './volumes.ts'

const uid = '0a1b2c3d-1111-2222-3333-444455556666'
const volumes = `/var/lib/kubelet/pods/${uid}/volumes/kubernetes.io~empty-dir`

const host = parseMountinfo(
  [
    '21 1 8:1 / / rw - ext4 /dev/sda1 rw',
    '22 21 8:2 / /var/lib/kubelet rw - ext4 /dev/sdb rw',
    `23 22 0:50 / ${volumes}/memory rw - tmpfs tmpfs rw,size=64m`,
    `24 22 0:51 / /var/lib/kubelet/pods/${uid}/volumes/kubernetes.io~projected/token rw - tmpfs tmpfs rw`,
  ].join('\n'),
)
const below = (path: string) => path.replace('/var/lib/kubelet', '')
const container = parseMountinfo(
  [
    '60 59 0:90 / / rw,relatime - overlay overlay rw,lowerdir=/l1:/l2,upperdir=/run/snap\\040shots/5/fs,workdir=/w',
    '61 60 0:91 / /proc rw - proc proc rw',
    '62 61 0:91 /bus /proc/bus ro - proc proc rw',
    `63 60 8:2 ${below(volumes)}/data /data rw - ext4 /dev/sdb rw`,
    `64 60 8:2 ${below(volumes)}/data/part /part rw - ext4 /dev/sdb rw`,
    '65 60 0:50 / /cache rw - tmpfs tmpfs rw,size=64m',
    `66 60 8:2 ${below(volumes)}/sub/a/b /sub\\040path rw - ext4 /dev/sdb rw`,
    '67 60 0:51 / /var/run/secrets/token ro - tmpfs tmpfs rw',
    `68 60 8:2 /pods/${uid}/etc-hosts /etc/hosts rw - ext4 /dev/sdb rw`,
    `69 60 8:2 /pods/another-pod/volumes/kubernetes.io~empty-dir/data /other rw - ext4 /dev/sdb rw`,
    // Shared with other pods: a claim behind NFS, and one in a directory of the node.
    '70 60 0:60 /export /shared rw - nfs4 server:/export rw',
    '71 60 8:1 /mnt/shared/claim /claim rw - ext4 /dev/sda1 rw',
  ].join('\n'),
)

describe('what belongs to the memory of a container', () => {
  test('emptyDirs on disk and in memory, whole and in part, and nothing else', () => {
    expect(emptyDirs(container, host, uid)).toEqual([
      { name: 'data', hostPath: `${volumes}/data` },
      { name: 'memory', hostPath: `${volumes}/memory` },
      { name: 'sub', hostPath: `${volumes}/sub` },
    ])
  })

  test('its writable layer', () => {
    expect(upperDirectory(container)).toBe('/run/snap shots/5/fs')
    expect(upperDirectory(container.map(mount => ({ ...mount, readOnly: true })))).toBeUndefined()
    expect(upperDirectory(host)).toBeUndefined()
  })

  test('what lies over the layer, outermost only', () => {
    expect(mountPoints(container)).toEqual([
      'cache',
      'claim',
      'data',
      'etc/hosts',
      'other',
      'part',
      'proc',
      'shared',
      'sub path',
      'var/run/secrets/token',
    ])
  })

  test('a directory that no mount of the host shows has no path', () => {
    expect(hostPathOf(host, '8:9', '/a')).toBeUndefined()
    expect(hostPathOf(host, '8:2', '/a')).toBe('/var/lib/kubelet/a')
    expect(hostPathOf(host, '8:1', '/a')).toBe('/a')
  })
})

test('an overlay that a container has mounted over its root names no directory of the node', () => {
  const over = parseMountinfo(
    '99 60 0:95 / / rw - overlay overlay rw,lowerdir=/l1,upperdir=/etc/kubernetes,workdir=/w',
  )
  expect(upperDirectory([...container, ...over])).toBe('/run/snap shots/5/fs')
})
