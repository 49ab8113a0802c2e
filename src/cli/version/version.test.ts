import { describe, expect, test } from 'vitest'
import { deployment, forbidden, healthy } from '../testing/installation.ts'
import { report } from '../testing/objects.ts'
import { versionsOf } from './version.ts'

const seen = { kubernetes: 'v1.36.0', version: '0.1.0' }

describe('D19.version: versions of both sides', () => {
  test('without skew', () => {
    expect(versionsOf({ ...seen, operator: deployment(2) }, [report('n1'), report('n2')], [])).toMatchObject({
      ...{ kubernetes: 'v1.36.0', operator: '0.1.0', skew: [], unknown: [] },
      client: { version: '0.1.0' },
      agents: [{ version: '0.1.0', nodes: ['n1', 'n2'] }],
    })
  })

  test('an older operator, and agents that were left behind', () => {
    const { skew } = versionsOf(
      { ...seen, operator: deployment(2, '0.0.9') },
      [report('n1', { version: '0.0.9' }), report('n2'), report('n3')],
      [],
    )
    expect(skew.map(({ message }) => message)).toEqual([
      'this program has version 0.1.0, the operator 0.0.9',
      'the agents of n2, n3 have version 0.1.0, the operator 0.0.9',
    ])
  })

  test('a user with few rights hears what is not known', () => {
    const found = versionsOf({ ...healthy, operator: forbidden }, new Error('no'), [])
    expect(found.operator).toBeUndefined()
    expect(found.unknown).toEqual(['operator: no', 'agents: no'])
  })
})
