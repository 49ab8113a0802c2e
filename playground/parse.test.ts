import { describe, expect, test } from 'vitest'
import { hasCapability } from './capabilities.ts'
import { withImageDigests } from './deploy.ts'
import { parseImageList } from './images-on-nodes.ts'
import { mountsBelow } from './leftovers.ts'
import { stateRoot } from './paths.ts'
import { extensionsOf, subject } from './pki.ts'
import { keysAfterImport } from './state.ts'

test('image list: names and digests, not the copies under a bare digest', () => {
  const table = `REF                                TYPE                                    DIGEST                SIZE     PLATFORMS   LABELS
docker.io/library/nginx:1.14.2     application/vnd.oci.image.index.v1+json sha256:aaaa           10.0 MiB linux/amd64 io.cri-containerd.image=managed
sha256:bbbb                        application/vnd.oci.image.index.v1+json sha256:aaaa           10.0 MiB linux/amd64 io.cri-containerd.image=managed
`
  expect(parseImageList(table)).toEqual([{ name: 'docker.io/library/nginx:1.14.2', digest: 'sha256:aaaa' }])
})

test('an image of before, wanted again after another of its name, is imported again', () => {
  const [pause, older, newer] = [
    '/c/pause-1/pause.tar:1:1',
    '/c/agent-1/agent.tar:2:2.5',
    '/c/agent-2/agent.tar:3:3',
  ]
  const after = keysAfterImport(keysAfterImport([], [pause, older]), [newer])
  expect(after).toEqual([pause, newer])
  expect(keysAfterImport(after, [older])).toEqual([pause, older])
})

test('mounts: deepest first, spaces unescaped, others left alone', () => {
  const mountinfo = `22 1 8:1 / / rw - ext4 /dev/x rw
30 22 0:4 net:[1] /run/netns/us-a-cp rw shared:9 - nsfs nsfs rw
31 22 0:4 net:[2] /run/netns/us-ab-cp rw shared:9 - nsfs nsfs rw
32 22 8:1 /x /var/lib/understudy/a/with\\040space rw - ext4 /dev/x rw
33 32 8:1 /y /var/lib/understudy/a/with\\040space/deep rw - ext4 /dev/x rw
`
  expect(mountsBelow(mountinfo, ['/run/netns/us-a-', '/var/lib/understudy/a/'])).toEqual([
    '/var/lib/understudy/a/with space/deep',
    '/var/lib/understudy/a/with space',
    '/run/netns/us-a-cp',
  ])
})

test('capabilities', () => {
  expect(hasCapability('CapEff:\t000001ffffffffff\n', 24n)).toBe(true)
  expect(hasCapability('CapInh:\t0000000001000000\nCapEff:\t000001fffeffffff\n', 24n)).toBe(false)
})

describe('certificates', () => {
  test('groups are organisations, and separators in names are escaped', () => {
    const request = { name: 'x', usage: 'client' } as const
    expect(subject({ ...request, commonName: 'system:node:n1', organizations: ['system:nodes'] })).toBe(
      '/O=system:nodes/CN=system:node:n1',
    )
    expect(subject({ ...request, commonName: 'a/CN=root+b' })).toBe('/CN=a\\/CN=root\\+b')
  })

  test('addresses and names are told apart', () => {
    const extensions = extensionsOf({
      name: 'x',
      commonName: 'x',
      usage: 'server',
      hosts: ['n1', '10.0.0.1'],
    })
    expect(extensions).toContain('subjectAltName=DNS:n1,IP:10.0.0.1')
    expect(extensions).toContain('extendedKeyUsage=serverAuth')
  })
})

test('state directories that overlay mount options cannot name are refused', () => {
  expect(stateRoot({ UNDERSTUDY_STATE: '/srv/x' })).toBe('/srv/x')
  expect(stateRoot({})).toBe('/var/lib/understudy')
  expect(() => stateRoot({ UNDERSTUDY_STATE: '/srv/a,b' })).toThrow(/must not contain/)
})

test('digests of known images go into pod templates of workloads, and nothing else changes', () => {
  const manifests = `apiVersion: v1
kind: Namespace
metadata: { name: ns }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: op, namespace: ns }
spec:
  template:
    metadata: { annotations: { a: b } }
    spec: { containers: [{ name: c, image: understudy.invalid/operator:1 }] }
`
  const digests = new Map([['understudy.invalid/operator:1', 'sha256:dd']])
  const { text, workloads } = withImageDigests(manifests, digests)
  expect(workloads).toEqual([{ kind: 'Deployment', namespace: 'ns', name: 'op' }])
  expect(text).toContain('playground.example.com/image-digests: sha256:dd')
  expect(withImageDigests(manifests, new Map()).text).not.toContain('sha256')
})
