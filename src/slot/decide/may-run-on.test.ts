import { describe, expect, it } from 'vitest'
import { mayRunOn, mayStartOn, nodeFacts } from './may-run-on.ts'

const labels = { pool: 'secret', cores: '16', empty: '' }
const withTaints = (
  ...taints: { readonly key: string; readonly value?: string; readonly effect: string }[]
) =>
  nodeFacts('n1', {
    metadata: { name: 'n1', uid: 'n1', resourceVersion: '1', labels },
    spec: { taints },
  })
const plain = withTaints()

const required = (...nodeSelectorTerms: object[]) => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
})
const asks = (key: string, operator: string, ...values: string[]) => ({ key, operator, values })
const expressions = (...matchExpressions: object[]) => required({ matchExpressions })
const fields = (...matchFields: object[]) => required({ matchFields })

describe('where a pod may run', () => {
  it.each([
    ['asks for nothing', {}, true],
    ['selects a label', { nodeSelector: { pool: 'secret' } }, true],
    ['selects another value', { nodeSelector: { pool: 'shared' } }, false],
    ['selects what is not there', { nodeSelector: { pool: 'secret', zone: 'a' } }, false],
    ['In', expressions(asks('pool', 'In', 'a', 'secret')), true],
    ['In, and it is not', expressions(asks('pool', 'In', 'a')), false],
    ['In, without the label', expressions(asks('zone', 'In', 'a')), false],
    ['In, of an object’s own words', expressions(asks('constructor', 'Exists')), false],
    ['NotIn', expressions(asks('pool', 'NotIn', 'a')), true],
    ['NotIn, without the label', expressions(asks('zone', 'NotIn', 'a')), true],
    ['NotIn, and it is', expressions(asks('pool', 'NotIn', 'secret')), false],
    ['Exists', expressions(asks('empty', 'Exists')), true],
    ['Exists, and it does not', expressions(asks('zone', 'Exists')), false],
    ['DoesNotExist', expressions(asks('zone', 'DoesNotExist')), true],
    ['DoesNotExist, and it does', expressions(asks('empty', 'DoesNotExist')), false],
    ['Gt', expressions(asks('cores', 'Gt', '8')), true],
    ['Gt, equal', expressions(asks('cores', 'Gt', '16')), false],
    ['Lt', expressions(asks('cores', 'Lt', '17')), true],
    ['Lt, less', expressions(asks('cores', 'Lt', '8')), false],
    ['Gt, no number', expressions(asks('pool', 'Gt', '8')), false],
    ['Lt, no bound', expressions(asks('cores', 'Lt')), false],
    ['an operator of a later version', expressions(asks('pool', 'Like', 'sec')), false],
    ['all of a term', expressions(asks('pool', 'Exists'), asks('zone', 'Exists')), false],
    ['its name', fields(asks('metadata.name', 'In', 'n1')), true],
    ['another name', fields(asks('metadata.name', 'In', 'n2')), false],
    ['not its name', fields(asks('metadata.name', 'NotIn', 'n1')), false],
    ['a field that there is not', fields(asks('spec.x', 'NotIn', 'n1')), false],
    [
      'one term of two',
      required(
        { matchFields: [asks('metadata.name', 'In', 'n2')] },
        { matchExpressions: [asks('pool', 'Exists')] },
      ),
      true,
    ],
    ['a term that is empty', required({}), false],
    ['no terms', required(), false],
    [
      'terms, and selects another value',
      { ...expressions(asks('pool', 'Exists')), nodeSelector: { pool: 'a' } },
      false,
    ],
    [
      'only prefers',
      { affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } } },
      true,
    ],
  ])('%s', (_, pod, may) => {
    expect(mayRunOn(pod, plain)).toBe(may)
  })

  const dedicated = { key: 'dedicated', value: 'secret', effect: 'NoSchedule' }
  it.each([
    ['nothing', dedicated, undefined, false],
    ['its value', dedicated, { key: 'dedicated', value: 'secret' }, true],
    [
      'its value, by name of the operator',
      dedicated,
      { key: 'dedicated', operator: 'Equal', value: 'secret' },
      true,
    ],
    ['another value', dedicated, { key: 'dedicated', value: 'other' }, false],
    ['any value', dedicated, { key: 'dedicated', operator: 'Exists' }, true],
    ['another key', dedicated, { key: 'other', operator: 'Exists' }, false],
    ['everything', dedicated, { operator: 'Exists' }, true],
    ['another effect', dedicated, { key: 'dedicated', operator: 'Exists', effect: 'NoExecute' }, false],
    ['its effect', { ...dedicated, effect: 'NoExecute' }, { operator: 'Exists', effect: 'NoExecute' }, true],
    [
      'it for a while',
      { ...dedicated, effect: 'NoExecute' },
      { operator: 'Exists', tolerationSeconds: 5 },
      true,
    ],
    ['nothing of a taint that evicts', { ...dedicated, effect: 'NoExecute' }, undefined, false],
    ['no value where there is none', { key: 'dedicated', effect: 'NoSchedule' }, { key: 'dedicated' }, true],
    ['an operator of a later version', dedicated, { key: 'dedicated', operator: 'Gt', value: '1' }, false],
    ['nothing of what it only prefers', { ...dedicated, effect: 'PreferNoSchedule' }, undefined, true],
    [
      'nothing of a node that is not ready',
      { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' },
      undefined,
      true,
    ],
    [
      'nothing of a node that is cordoned',
      { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' },
      undefined,
      true,
    ],
  ])('it tolerates %s', (_, taint, toleration, may) => {
    expect(mayRunOn({ tolerations: toleration && [toleration] }, withTaints(taint))).toBe(may)
  })

  it('a new pod may not start there meanwhile', () => {
    const cordoned = withTaints({ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' })
    expect([
      mayStartOn({}, cordoned),
      mayStartOn({ tolerations: [{ operator: 'Exists' }] }, cordoned),
    ]).toEqual([false, true])
    expect([mayStartOn({}, plain), mayStartOn({ nodeSelector: { pool: 'a' } }, plain)]).toEqual([true, false])
  })

  it('every taint has to be tolerated', () => {
    const node = withTaints(dedicated, { key: 'gpu', effect: 'NoSchedule' })
    expect(mayRunOn({ tolerations: [{ key: 'dedicated', operator: 'Exists' }] }, node)).toBe(false)
  })
})
