import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { prefix } from '../api/labels.ts'
import { carriedBy, carriedLimits, withCarried } from './carried.ts'

const template = { labels: { app: 'web' }, annotations: { note: 'of the template' } }

describe('MP-33: what users add to a pod goes with it', () => {
  it('beside what the template says, which wins', () => {
    const pod = {
      labels: { app: 'other', shard: '7', type: 'primary', [`${prefix}slot`]: '0' },
      annotations: { note: 'changed', 'example.com/owner': 'me', [`${prefix}epoch`]: '3' },
    }
    const carried = carriedBy(pod, template)
    expect(carried).toEqual({ labels: { shard: '7' }, annotations: { 'example.com/owner': 'me' } })
    expect(withCarried({ metadata: template }, carried)).toEqual({
      metadata: {
        labels: { app: 'web', shard: '7' },
        annotations: { note: 'of the template', 'example.com/owner': 'me' },
      },
    })
  })

  it.each([
    'cni.projectcalico.org/podIP',
    'k8s.v1.cni.cncf.io/network-status',
    'k8s.ovn.org/pod-networks',
    'sidecar.istio.io/status',
    'kubectl.kubernetes.io/last-applied-configuration',
  ])('%s stays: it describes the place of one pod', key =>
    expect(carriedBy({ annotations: { [key]: 'x' } }, undefined).annotations).toEqual({}),
  )

  it('is bounded, marks nothing as ours, and is the same for the same pod', () => {
    const entries = fc.dictionary(fc.string({ maxLength: 20 }), fc.string({ maxLength: 3_000 }), {
      maxKeys: 150,
    })
    fc.assert(
      fc.property(entries, entries, (labels, annotations) => {
        const carried = carriedBy({ labels, annotations }, template)
        const notes = Object.entries(carried.annotations)
        const length = notes.reduce((sum, [key, value]) => sum + key.length + value.length, 0)
        expect(Object.keys(carried.labels).length).toBeLessThan(carriedLimits.labels)
        expect(notes.length).toBeLessThanOrEqual(carriedLimits.annotations)
        expect(length).toBeLessThanOrEqual(carriedLimits.total)
        const next = withCarried({ metadata: template }, carried).metadata
        expect(
          carriedBy({ labels: next?.labels ?? {}, annotations: next?.annotations ?? {} }, template),
        ).toEqual(carried)
      }),
      { numRuns: 50 },
    )
  })
})
