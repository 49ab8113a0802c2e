import { describe, expect, it } from 'vitest'
import { labels } from '../../api/labels.ts'
import { holdInitContainer, probesAnnotation, savedAnnotation } from '../../api/pod-contract.ts'
import type { Pod } from '../../kube/resources.ts'
import { viewOf } from '../observe/pod-view.ts'
import { kept, lease, nameOf, peer, policy, snapshot, understudy } from '../testing/fake/snapshots.ts'
import { desiredTasks } from './desired-tasks.ts'
import { usabilityOf } from './usability.ts'

const old = '0'.repeat(16)
const next = 'f'.repeat(16)

/** The policy is of the new template; the primary on node `p` and its memory have the old one. */
const changed = (...hashes: readonly string[]) =>
  snapshot({
    node: 'b',
    pods: hashes.map((restoreHash, i) => understudy(`h${i}`, { restoreHash })),
    slots: [
      lease({ policy: policy({ restoreHash: next }), heir: { name: 'h0', uid: 'uid-h0', ip: '10.0.0.2' } }),
    ],
    reports: new Map([['a', peer('a')]]),
    kept: new Map([[nameOf(), kept({ restoreHash: old })]]),
    proven: new Set([old]),
  })

describe('after the template of a set has changed', () => {
  it('D3.restore-hash: memory goes only into understudies of the restore hash that it was saved under', () => {
    const typesFor = (...hashes: readonly string[]) =>
      desiredTasks(changed(...hashes)).flatMap(task =>
        'pod' in task ? [`${task.type} ${task.pod.name}`] : [],
      )
    expect(typesFor(old)).toEqual(['freeze h0'])
    expect(typesFor(next)).toEqual(['discard h0'])
    expect(typesFor(next, old)).toEqual(['discard h0', 'discard h1'])
  })

  it('it is usable where such an understudy is, and what is said names the template where there is none', () => {
    expect(usabilityOf(changed(old), lease())).toMatchObject({ usable: 'Staged' })
    expect(usabilityOf(changed(next, old), lease())).toMatchObject({ usable: 'Staged' })
    expect(usabilityOf(changed(next), lease())).toMatchObject({ reason: 'TemplateChanged' })
  })
})

describe('a pod is asked by the probes of its own template', () => {
  const probe = { tcpSocket: { port: 1 } }
  const pod = (over: Readonly<Record<string, string>>, spec: Partial<Pod['spec']> = {}) =>
    viewOf(
      {
        metadata: {
          name: 'h0',
          namespace: 'default',
          uid: 'u',
          resourceVersion: '1',
          labels: { [labels.set]: 'web', [labels.restoreHash]: old },
          annotations: { [savedAnnotation]: 'app', ...over },
        },
        spec: {
          initContainers: [{ name: holdInitContainer }],
          containers: [{ name: 'app' }, { name: 'log' }],
          ...spec,
        },
      },
      { containers: ['other'], restoreHash: next },
    )

  it('which an understudy carries beside it', () => {
    const view = pod({ [probesAnnotation]: JSON.stringify({ app: { livenessProbe: probe } }) })
    expect(view?.apps).toEqual([{ name: 'app', livenessProbe: probe }])
    expect(view?.restoreHash).toBe(old)
    expect(view?.containers.map(({ name }) => name)).toEqual(['app'])
  })

  it('and a primary has; what cannot be read counts as none', () => {
    const view = pod({}, { containers: [{ name: 'app', readinessProbe: probe }] })
    expect(view?.apps).toEqual([{ name: 'app', readinessProbe: probe }])
    const torn = pod({ [probesAnnotation]: '{"app":' })
    expect(torn?.apps).toEqual([{ name: 'app' }])
  })

  it('D7.policy: one from before its set kept memory has what its slot says, with its own probes', () => {
    const { metadata, spec } = {
      metadata: {
        name: 'p',
        namespace: 'default',
        uid: 'u',
        resourceVersion: '1',
        labels: { [labels.set]: 'web' },
      },
      spec: {
        containers: [
          { name: 'app', image: 'a', livenessProbe: probe },
          { name: 'log', image: 'l' },
        ],
      },
    }
    const view = viewOf({ metadata, spec }, { containers: ['app'], restoreHash: next })
    expect(view?.apps).toEqual([{ name: 'app', image: 'a', livenessProbe: probe }])
    expect(view?.restoreHash).toBe(next)
    // No memory fits it, and it is of none, until the policy is known.
    expect(viewOf({ metadata, spec }, undefined)?.restoreHash).toBeUndefined()
  })
})

it("the label `type` of another owner's pod is its own, whatever it says", () => {
  const marks = { [labels.set]: 'move_web', [labels.type]: 'primary', [labels.role]: 'hotbackup' }
  const metadata = { name: 'p', namespace: 'shop', uid: 'u', resourceVersion: '1', labels: marks }
  expect(viewOf({ metadata }, undefined)?.kind).toBe('hotbackup')
})
