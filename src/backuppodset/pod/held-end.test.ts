import { describe, expect, it } from 'vitest'
import { parseSet } from '../../api/parse.ts'
import { heldEndAnnotation } from '../../api/pod-contract.ts'
import { renderPod } from './render.ts'

const settings = { wakerImage: 'waker:1', wakeKeys: [new Uint8Array(32)] } as const
const owner = { apiVersion: 'backup.example.com/v1alpha1', kind: 'MigratingPod', name: 'web', uid: 'm' }
const hook = { sleep: { seconds: 10 } }

/** The first pod of a set, or a pod that is made to take over. */
function rendered(
  pod: object,
  {
    kind = 'primary',
    spec = {},
    ofMigratingPod = true,
  }: { kind?: 'primary' | 'hotbackup'; spec?: object; ofMigratingPod?: boolean } = {},
) {
  const ownerReferences = ofMigratingPod ? [{ ...owner, controller: true }] : []
  const metadata = { name: 'web', namespace: 'shop', uid: 'u', resourceVersion: '1', ownerReferences }
  const containers = [{ name: 'app', image: 'app' }]
  const result = parseSet({
    metadata,
    spec: { checkpoint: {}, template: { spec: { containers, ...pod } }, ...spec },
  })
  if (!result.ok) throw new Error(result.message)
  const action = { type: 'create', kind, name: 'web-0', strategy: 'random', role: undefined } as const
  const made = renderPod(result.set, action, settings)
  return {
    held: made.metadata?.annotations?.[heldEndAnnotation],
    hooks: made.spec?.containers.map(({ lifecycle }) => lifecycle?.preStop),
  }
}

describe('D16.last-save: the app of a MigratingPod learns late that its pod is deleted', () => {
  it('in its first pod, and in those that take over', () => {
    for (const kind of ['primary', 'hotbackup'] as const)
      expect(rendered({}, { kind })).toEqual({ held: '5', hooks: [hook] })
  })

  it('in saved containers only', () => {
    const containers = ['app', 'side'].map(name => ({ name, image: name }))
    const spec = { checkpoint: { containers: ['app'] }, template: { spec: { containers } } }
    expect(rendered({}, { spec }).hooks).toEqual([hook, undefined])
  })

  it.each([
    ['as long as its grace period allows', { terminationGracePeriodSeconds: 4 }, '3'],
    ['not without time for that', { terminationGracePeriodSeconds: 2 }, undefined],
    [
      'not if a hook of its own tells it',
      { containers: [{ name: 'app', image: 'app', lifecycle: { preStop: { exec: { command: ['x'] } } } }] },
      undefined,
    ],
  ])('%s', (_, pod, held) => expect(rendered(pod).held).toBe(held))

  it('other sets are as before: their understudies resume at once', () => {
    expect(rendered({}, { ofMigratingPod: false })).toEqual({ held: undefined, hooks: [undefined] })
  })
})
