import { describe, expect, it } from 'vitest'
import { parseSet } from '../../api/parse.ts'
import { renderPod } from './render.ts'

const settings = { wakerImage: 'waker:1', wakeKeys: [new Uint8Array(32)] } as const
const owner = { apiVersion: 'backup.example.com/v1alpha1', kind: 'MigratingPod', name: 'web', uid: 'm' }
const at = (name: string) => [{ name, mountPath: `/${name}` }]
const app = { name: 'app', image: 'app', volumeMounts: at('data') }
const first = { name: 'first', image: 'app', volumeMounts: at('data') }

interface Case {
  readonly pod?: object
  readonly checkpoint?: object
  readonly isSuccessor?: boolean
  readonly ofMigratingPod?: boolean
}

/** Returns the names of the init containers of a pod. */
function initOf({ pod, checkpoint = {}, isSuccessor = true, ofMigratingPod = true }: Case) {
  const ownerReferences = ofMigratingPod ? [{ ...owner, controller: true }] : []
  const template = {
    spec: { containers: [app], initContainers: [first], volumes: [{ name: 'data', emptyDir: {} }], ...pod },
  }
  const result = parseSet({
    metadata: { name: 'web', namespace: 'shop', uid: 'u', resourceVersion: '1', ownerReferences },
    spec: { checkpoint, template },
  })
  if (!result.ok) throw new Error(result.message)
  const { spec } = renderPod(
    result.set,
    {
      ...({ type: 'create', name: 'web-1', strategy: 'random', role: undefined } as const),
      ...(isSuccessor
        ? ({ kind: 'hotbackup', successorOf: { slot: 0, near: [] } } as const)
        : ({ kind: 'primary' } as const)),
    },
    settings,
  )
  return spec?.initContainers?.map(({ name }) => name)
}

describe('MP-18: an init container', () => {
  it('runs in the first pod, and not in the pod that continues with its memory', () => {
    expect(initOf({ isSuccessor: false })).toEqual(['first'])
    expect(initOf({})).toEqual(['understudy-hold'])
  })

  it('may have written to a shared volume, which the next pod has, too', () =>
    expect(
      initOf({ pod: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] } }),
    ).toEqual(['understudy-hold']))

  it.each<[string, Case]>([
    ['its files are those of the node', { pod: { volumes: [{ name: 'data', hostPath: { path: '/d' } }] } }],
    [
      'it may set up the network of the pod',
      {
        pod: {
          initContainers: [{ ...first, securityContext: { capabilities: { add: ['CAP_NET_ADMIN'] } } }],
        },
      },
    ],
    [
      'a container starts anew beside the memory',
      { pod: { containers: [app, { ...app, name: 'side' }] }, checkpoint: { containers: ['app'] } },
    ],
    ['the pod is of a set, which makes hot backups before it knows of what', { ofMigratingPod: false }],
  ])('runs again if %s', (_, seen) => expect(initOf(seen)).toEqual(['understudy-hold', 'first']))

  it('runs again before a sidecar, for which it may have prepared something', () => {
    const initContainers = [first, { name: 'proxy', image: 'proxy', restartPolicy: 'Always' }]
    expect(initOf({ pod: { initContainers } })).toEqual(['understudy-hold', 'first', 'proxy'])
  })
})
