import { describe, expect, it } from 'vitest'
import { requireStage, withPlacement } from './stage-affinity.ts'

const nodeAffinityOf = (affinity: ReturnType<typeof withPlacement>) => affinity?.nodeAffinity
const terms = (affinity: ReturnType<typeof withPlacement>) =>
  nodeAffinityOf(affinity)?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
const named = (operator: string, node: string) => ({ key: 'metadata.name', operator, values: [node] })

describe('the placement of a pod that is made to take over', () => {
  it('requires a node, or excludes one, by name', () => {
    expect(terms(withPlacement(undefined, { on: 'a' }))).toEqual([{ matchFields: [named('In', 'a')] }])
    expect(terms(withPlacement(undefined, { notOn: 'b' }))).toEqual([{ matchFields: [named('NotIn', 'b')] }])
  })

  it('is required in addition to the other requirements, in each alternative', () => {
    const zone = (value: string) => ({ key: 'zone', operator: 'In', values: [value] })
    const own = {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [zone('a')] }, { matchExpressions: [zone('b')] }],
        },
      },
    }
    const onStage = { key: 'backup.example.com/stage', operator: 'In', values: ['ready'] }
    expect(terms(requireStage(withPlacement(own, { on: 'a', notOn: 'b' })))).toEqual(
      ['a', 'b'].map(value => ({
        matchExpressions: [zone(value), onStage],
        matchFields: [named('In', 'a'), named('NotIn', 'b')],
      })),
    )
  })

  it('requires the labels of a move beside those that the pod selects itself: it never replaces them', () => {
    const affinity = withPlacement(undefined, { notOn: 'b', nodeSelector: { disk: 'big', zone: 'a' } })
    expect(terms(affinity)).toEqual([
      {
        matchExpressions: [
          { key: 'disk', operator: 'In', values: ['big'] },
          { key: 'zone', operator: 'In', values: ['a'] },
        ],
        matchFields: [named('NotIn', 'b')],
      },
    ])
  })

  it('prefers nodes without requiring any', () => {
    const affinity = withPlacement(undefined, { near: ['a', 'b'] })
    expect(nodeAffinityOf(affinity)?.preferredDuringSchedulingIgnoredDuringExecution).toEqual([
      { weight: 100, preference: { matchFields: [named('In', 'a')] } },
      { weight: 90, preference: { matchFields: [named('In', 'b')] } },
    ])
    expect(terms(affinity)).toBeUndefined()
  })

  it('that is only to be avoided forbids nothing', () => {
    const affinity = withPlacement(undefined, { avoid: ['b', 'c'] })
    expect(terms(affinity)).toBeUndefined()
    expect(nodeAffinityOf(affinity)?.preferredDuringSchedulingIgnoredDuringExecution).toEqual([
      { weight: 100, preference: { matchFields: [named('NotIn', 'b'), named('NotIn', 'c')] } },
    ])
  })

  it('of nothing leaves the affinity as it is', () => expect(withPlacement(undefined, {})).toBeUndefined())
})
