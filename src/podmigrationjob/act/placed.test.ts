import { describe, expect, it } from 'vitest'
import { elsewhere, placed } from './placed.ts'

const containers = [{ name: 'app' }]
const is = (key: string, value: string) => ({ key, operator: 'In', values: [value] }) as const
const required = (...nodeSelectorTerms: object[]) => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
})

describe('PJ08: the rules of the workload and of its reservation', () => {
  it('hold together', () => {
    const own = { ...required({ matchExpressions: [is('a', '1')] }, { matchExpressions: [is('b', '2')] }) }
    const placement = {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [is('c', '3')] }],
          },
        },
      },
      nodeSelector: { zone: 'b' },
      nodeName: 'n7',
    }
    const matchFields = [is('metadata.name', 'n7')]
    expect(placed({ containers, nodeSelector: { disk: 'ssd' }, ...own }, placement)).toEqual({
      ...{ containers, nodeSelector: { disk: 'ssd', zone: 'b' } },
      ...required(
        { matchExpressions: [is('a', '1'), is('c', '3')], matchFields },
        { matchExpressions: [is('b', '2'), is('c', '3')], matchFields },
      ),
    })
  })

  it('that contradict each other are refused, with both values', () => {
    expect(() =>
      placed({ containers, nodeSelector: { zone: 'a' } }, { nodeSelector: { zone: 'b' } }),
    ).toThrow(/zone: the template of the reservation says b, and the workload a/)
  })

  it('are none without rules, and another node without those of the workload', () => {
    expect(placed({ containers }, {})).toEqual({ containers })
    const not = { key: 'metadata.name', operator: 'NotIn', values: ['n1'] }
    expect(placed({ containers }, elsewhere({}, 'n1'))).toEqual({
      containers,
      ...required({ matchFields: [not] }),
    })
  })
})
