import { describe, expect, test } from 'vitest'
import { hostPathOf, parseMountinfo } from './mountinfo.ts'
import { podsDirectoryIn } from './pods-directory.ts'
import { emptyDirs, mayBeEmptyDirs, mountPoints, upperDirectory } from './volumes.ts'

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
// The agent's container belongs to another pod.
const own = parseMountinfo(
  '80 79 8:2 /pods/agent-uid/containers/agent/1f2e3d4c /dev/termination-log rw - ext4 /dev/sdb rw',
)
const pods = podsDirectoryIn(own) ?? { device: '', root: '' }
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
    // Volumes shared with other pods: a claim on NFS, and a claim in a directory of the node.
    '70 60 0:60 /export /shared rw - nfs4 server:/export rw',
    '71 60 8:1 /mnt/shared/claim /claim rw - ext4 /dev/sda1 rw',
  ].join('\n'),
)

describe('what belongs to the memory of a container', () => {
  test('emptyDirs on disk and in memory, whole and in part, and nothing else', () => {
    expect(emptyDirs(container, host, pods, uid)).toEqual([
      { name: 'data', hostPath: `${volumes}/data`, readOnly: false },
      { name: 'memory', hostPath: `${volumes}/memory`, readOnly: false },
      { name: 'sub', hostPath: `${volumes}/sub`, readOnly: false },
    ])
  })

  test('D10.volume-names: paths that a tenant makes in its volumes name no directory of the node', () => {
    const made = `pods/${uid}/volumes/kubernetes.io~empty-dir/x`
    const mounts = parseMountinfo(
      [
        // A subPath of a volume in memory, moved and then removed.
        `65 60 0:50 /${made}//deleted /cache rw - tmpfs tmpfs rw,size=64m`,
        // Subpaths of volumes that are not saved: on NFS, in a directory of the node, and on the kubelet's own disk.
        `70 60 0:60 /export/${made} /shared rw - nfs4 server:/export rw`,
        `71 60 8:1 /mnt/shared/claim/${made} /claim rw - ext4 /dev/sda1 rw`,
        `72 60 8:2 /plugins/local/${made} /local rw - ext4 /dev/sdb rw`,
        `73 60 8:2 ${below(volumes)}/data/${made} /data rw - ext4 /dev/sdb rw`,
        // Another filesystem with the same paths as the kubelet's.
        `74 60 8:9 /${made} /disk rw - ext4 /dev/sdc rw`,
      ].join('\n'),
    )
    expect(emptyDirs(mounts, host, pods, uid).map(({ hostPath }) => hostPath)).toEqual([
      `${volumes}/data`,
      `${volumes}/memory`,
    ])
    // The host also shows mounts that a tenant's server makes below its volume.
    const nested = parseMountinfo(
      [
        `30 22 0:60 / /var/lib/kubelet/pods/${uid}/volumes/kubernetes.io~nfs/claim rw - nfs4 server:/ rw`,
        `31 30 0:61 / /var/lib/kubelet/pods/${uid}/volumes/kubernetes.io~nfs/claim/${made} rw - nfs4 server:/${made} rw`,
        `32 22 0:62 / ${volumes}/data/deep rw - nfs4 server:/ rw`,
      ].join('\n'),
    )
    const theirs = nested.map(mount => ({ ...mount, mountPoint: '/elsewhere' }))
    expect(emptyDirs(theirs, [...host, ...nested], pods, uid)).toEqual([])
  })

  test('where the kubelet keeps pods is what the container of the agent says', () => {
    expect(pods).toEqual({ device: '8:2', root: '/pods' })
    expect(
      podsDirectoryIn(parseMountinfo('80 79 8:3 /a/containers/b/c /dev/termination-log rw - ext4 d rw')),
    ).toEqual({
      device: '8:3',
      root: '/',
    })
    expect(podsDirectoryIn(container)).toBeUndefined()
    expect(mayBeEmptyDirs(container, host)).toBe(true)
    expect(mayBeEmptyDirs(host.slice(0, 2), host)).toBe(false)
  })

  test('one is for reading only where all mounts of it are', () => {
    const readOnly = (...points: readonly string[]) =>
      emptyDirs(
        container.map(mount => ({ ...mount, readOnly: points.includes(mount.mountPoint) })),
        host,
        pods,
        uid,
      ).flatMap(volume => (volume.readOnly ? [volume.name] : []))
    expect(readOnly('/data', '/cache')).toEqual(['memory'])
    expect(readOnly('/part', '/data')).toEqual(['data'])
    expect(readOnly('/part')).toEqual([])
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
