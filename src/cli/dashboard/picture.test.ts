import { expect, test } from 'vitest'
import { migration } from '../testing/moves.ts'
import {
  condition,
  goodConditions,
  pod,
  report,
  set,
  slotReport,
  understudyCondition,
} from '../testing/objects.ts'
import { picturesOf, plainText } from './picture.ts'

const heir = pod('web-h', 'hotbackup', { node: 'n2', status: understudyCondition('True', 'Frozen', '') })
const world = {
  sets: [set()],
  pods: [pod('web-p', 'primary'), heir],
  reports: [report('n2', { slots: [slotReport({ usable: 'Frozen', understudyUid: 'uid-web-h' })] })],
  migrations: [migration('m', 'Preparing')],
}

test('D20.facts: a picture has the facts of `status`, and who would follow', () => {
  expect(picturesOf(world)).toMatchObject([
    {
      ...{ key: 'shop/web', ready: true, drill: false, troubles: [] },
      memory: { mode: 'Frozen', interval: '1s' },
      slots: [
        {
          ...{ slot: 0, pod: 'web-p', node: 'n1', ready: true, protection: 'Frozen', generation: 14 },
          ...{ savedAt: Date.parse('2030-01-01T00:59:59.160Z') },
          followers: [{ how: 'Frozen', pod: 'web-h', node: 'n2' }],
        },
      ],
      timeline: [{ type: 'failover' }, { type: 'move' }],
    },
  ])
})

test('D20.facts: nothing of the template, of labels, annotations and environments leaves the program', () => {
  const secret = 'hunter2'
  const [only] = picturesOf({
    ...world,
    sets: [
      {
        ...set(
          {},
          {
            template: {
              metadata: { annotations: { secret } },
              spec: { containers: [{ name: 'app', image: secret, env: [{ name: 'A', value: secret }] }] },
            },
          },
        ),
      },
    ],
    pods: [{ ...heir, spec: { containers: [{ name: 'app', args: [secret] }] } }],
  })
  expect(only?.key).toBe('shop/web')
  expect(JSON.stringify(only)).not.toContain(secret)
})

test('texts of tenants have no characters that control a terminal or turn text around', () => {
  const conditions = [
    ...goodConditions.slice(1),
    condition('Ready', 'False', 'PodsMissing', 'a\u001b[31mb\u202ec\nd\u0000'),
  ]
  const [only] = picturesOf({ ...world, sets: [set({ conditions })] })
  expect(only?.troubles[0]?.text).toBe('Ready is False (PodsMissing): a\\u001b[31mb\\u202ec d\\u0000')
  expect(plainText('\u001b[1m')).toBe('\\u001b[1m')
})

test('a row names a few of the pods that may follow, and counts the rest', () => {
  const hot = Array.from({ length: 200 }, (_, index) =>
    pod(`web-h${index}`, 'hotbackup', { node: 'n2', status: understudyCondition('True', 'Staged', '') }),
  )
  const staged = [report('n2', { slots: [slotReport({ usable: 'Staged' })] })]
  const [only] = picturesOf({ ...world, pods: [pod('web-p', 'primary'), ...hot], reports: staged })
  expect(only?.slots[0]?.followers).toHaveLength(3)
  expect(only?.slots[0]?.otherFollowers).toBe(197)
})
