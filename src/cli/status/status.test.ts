import { describe, expect, test } from 'vitest'
import { migratingPod, migration } from '../testing/moves.ts'
import {
  atGate,
  condition,
  goodConditions,
  now,
  pod,
  report,
  set,
  slotReport,
  understudyCondition,
} from '../testing/objects.ts'
import { setFacts } from './facts.ts'
import { podFacts } from './pods.ts'
import { type RenderOptions, renderList, renderSet } from './render.ts'

const options: RenderOptions = { wide: false, allNamespaces: false, now, paint: (_, text) => text }
const pods = [
  pod('web-h', 'hotbackup', {
    node: 'n2',
    status: understudyCondition('True', 'Frozen', 'slot 0 is frozen here'),
  }),
  pod('web-p', 'primary'),
]
const reports = [
  report('n1', { slots: [slotReport({ role: 'source', intervalSeconds: 1 })] }),
  report('n2', { slots: [slotReport({ usable: 'Frozen' }), slotReport({ name: 'other-0' })] }),
  report('n3'),
]
const lines = (text: string) => text.split('\n')

describe('all about one set', () => {
  const text = renderSet(setFacts(set(), pods, reports), options)

  test('slots say who holds them and how their memory is protected', () => {
    expect(text).toContain(
      [
        'SLOT   POD     NODE   READY   EPOCH   GENERATION   STATE AGE   PROTECTION   USABLE ON   LAST FAILOVER',
        '0      web-p   n1     yes     2       14           0.8s        Frozen       n2          10m ago in 0.12 s, memory 0.4s old',
      ].join('\n'),
    )
    expect(text).toContain(
      'last failover  slot 0, web-old → web-p (Died), 10m ago in 0.12 s, memory 0.4s old',
    )
  })

  test('wide, slots name the hot backup that may take them without the operator', () => {
    const granted = setFacts(set(), pods, reports)
    const slots = granted.slots.map(slot => ({ ...slot, grantedTo: 'web-h' }))
    expect(renderSet({ ...granted, slots }, { ...options, wide: true })).toMatch(
      /GRANTED TO +LAST FAILOVER\n.* web-h +10m ago/,
    )
  })

  test('pods say what they are there for', () => {
    expect(text).toContain(
      [
        'POD     KIND        SLOT   NODE   STATE    RESTARTS   AGE',
        'web-p   primary     0      n1     Ready    0          60m',
        'web-h   hotbackup          n2     Frozen   0          60m',
      ].join('\n'),
    )
  })

  test('nodes say what they keep of this set and of no other, and nodes without anything of it are left out', () => {
    expect(text).toContain('n1     0.1.0   yes     2.0s ago   slot 0: source, generation 14, 3.1 MB')
    expect(text).toContain('n2     0.1.0   yes     2.0s ago   slot 0: Frozen, generation 14, 3.1 MB')
    expect(text).not.toContain('n3')
  })

  test('where all is well it says so', () => {
    expect(text).toContain('✓ all conditions are as expected')
    expect(text).not.toContain('✗')
  })

  test('what is not as it should be comes with its cure', () => {
    const conditions = [
      ...goodConditions.filter(({ type }) => type !== 'CheckpointReady'),
      condition('CheckpointReady', 'False', 'NoAgents', 'no node reports'),
    ]
    const facts = setFacts(set({ conditions }), pods, reports)
    expect(lines(renderSet(facts, options)).slice(-2)).toEqual([
      '✗ CheckpointReady is False (NoAgents): no node reports',
      '  → run `kubectl understudy doctor`: it names each node with a problem, and the cure',
    ])
  })

  test('a node whose agent fails a check names it; one without an agent says so', () => {
    const checks = [{ name: 'canary', ok: false, message: 'CRIU could not save', cure: 'x' }]
    const text = renderSet(setFacts(set(), pods, [report('n2', { checks, ready: false })]), options)
    expect(text).toMatch(/^n1 +none +no +-/m)
    expect(text).toMatch(/^n2 +0\.1\.0 +canary: CRIU could not save/m)
  })

  test('who may not read reports gets the rest, and is told', () => {
    const text = renderSet(setFacts(set(), pods, undefined), options)
    expect(text).toContain('you may not read nodereports')
    expect(text).toContain('web-p')
  })

  test('a set without memory has no columns of memory', () => {
    const { checkpoint: _, ...spec } = set().spec
    const plain = { ...set({ slots: [{ slot: 0, pod: 'web-p', node: 'n1', epoch: 1, ready: true }] }), spec }
    const text = renderSet(setFacts(plain, [pod('web-p', 'primary')], reports), options)
    expect(text).toContain('memory         not kept')
    expect(text).not.toContain('GENERATION')
    expect(text).not.toContain('NODE   AGENT')
  })

  test('a version of the set that the operator has not seen is not called Ready', () => {
    const facts = setFacts(set({ observedGeneration: 0 }), pods, reports)
    expect(facts.ready).toBe(false)
    expect(facts.troubles[0]).toMatchObject({ condition: 'Observed' })
  })

  test('a set that was just made has no status at all', () => {
    const { status: _, ...fresh } = set()
    expect(renderSet(setFacts(fresh, [], reports), options)).toContain('primaries      0/1 ready')
  })
})

describe('all sets', () => {
  test('a line each, with what they need', () => {
    const bad = setFacts(
      set({
        slots: [{ slot: 0, pod: 'web-p', epoch: 1, ready: true, protection: 'None' }],
        conditions: [
          condition('Ready', 'False', 'PodsMissing'),
          condition('CheckpointReady', 'False', 'NoUnderstudy'),
        ],
      }),
      [],
      [],
    )
    expect(lines(renderList([setFacts(set(), pods, reports), bad], options))).toEqual([
      'NAME   READY   PRIMARIES   HOT   COLD   MEMORY     OLDEST STATE   AGE   NEEDS',
      'web    yes     1/1         1/1   0/0    1 Frozen   0.8s           60m',
      'web    no      1/1         1/1   0/0    1 None     -              60m   PodsMissing, NoUnderstudy',
    ])
  })

  test('wide, of all namespaces', () => {
    const text = renderList([setFacts(set(), pods, reports)], { ...options, wide: true, allNamespaces: true })
    expect(text).toContain('NAMESPACE')
    expect(text).toMatch(/shop +web .* Frozen +1s +10m ago in 0\.12 s, memory 0\.4s old$/)
  })
})

describe('the state of a pod', () => {
  const stateOf = (one: ReturnType<typeof pod>) => {
    const [facts] = podFacts([one])
    return [facts?.state, facts?.inPlace, facts?.note]
  }

  test.each([
    ['a primary that serves', pod('a', 'primary'), ['Ready', true, undefined]],
    ['a cold backup at its gate', pod('a', 'coldbackup', { status: atGate }), ['AtGate', true, undefined]],
    [
      'a cold backup before it',
      pod('a', 'coldbackup', { status: { phase: 'Pending' } }),
      ['Starting', false, undefined],
    ],
    [
      'an understudy that cannot take over',
      pod('a', 'hotbackup', { status: understudyCondition('False', 'NoGeneration', 'none has arrived') }),
      ['NoGeneration', false, 'none has arrived'],
    ],
    [
      'an understudy nobody has looked at',
      pod('a', 'hotbackup', { status: {} }),
      ['Starting', false, undefined],
    ],
    [
      'a pod without a node',
      pod('a', 'hotbackup', {
        status: {
          conditions: [
            { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes' },
          ],
        },
      }),
      ['Unschedulable', false, '0/3 nodes'],
    ],
    [
      'a pod whose image is not there',
      pod('a', 'primary', {
        status: {
          containerStatuses: [
            {
              name: 'app',
              restartCount: 0,
              state: { waiting: { reason: 'ErrImagePull', message: 'no such image' } },
            },
          ],
        },
      }),
      ['ErrImagePull', false, 'no such image'],
    ],
    [
      'a primary whose app has ended',
      pod('a', 'primary', {
        status: {
          conditions: [
            { type: 'Ready', status: 'False' },
            {
              type: 'backup.example.com/serving',
              status: 'False',
              reason: 'Died',
              message: 'container app has ended',
            },
          ],
        },
      }),
      ['Died', false, 'container app has ended'],
    ],
    [
      'a dead primary whose heir answers its connections',
      pod('a', 'primary', {
        status: {
          conditions: [
            { type: 'Ready', status: 'True' },
            { type: 'backup.example.com/serving', status: 'True', reason: 'Died', message: 'has ended' },
          ],
        },
      }),
      ['Died', false, 'has ended'],
    ],
    ['a pod on its way out', pod('a', 'retired', { deleted: true }), ['Terminating', true, undefined]],
    [
      'a pod that was evicted',
      pod('a', 'primary', { status: { phase: 'Failed', message: 'no disk' } }),
      ['Failed', false, 'no disk'],
    ],
  ])('%s', (_, one, expected) => {
    expect(stateOf(one)).toEqual(expected)
  })
})

test('R16: what a node has told since shows how old the memory is that is kept now', () => {
  const slots = [
    { slot: 0, pod: 'web-p', epoch: 2, ready: true, generation: 10, savedAt: '2030-01-01T00:59:20Z' },
  ]
  const newer = report('n2', {
    slots: [slotReport({ usable: 'Frozen', epoch: 2, takenAt: '2030-01-01T00:59:57Z' })],
  })
  const older = report('n3', {
    slots: [slotReport({ epoch: 2, generation: 15, takenAt: '2030-01-01T00:59:59Z' })],
  })
  const seen = (all: Parameters<typeof setFacts>[2]) => setFacts(set({ slots }), pods, all).slots
  expect(seen([newer, older])).toMatchObject([{ generation: 14, savedAt: '2030-01-01T00:59:57Z' }])
  expect(seen(undefined)).toMatchObject([{ generation: 10, savedAt: '2030-01-01T00:59:20Z' }])
})

describe('D18.status: a MigratingPod', () => {
  const of = (...args: Parameters<typeof migratingPod>) =>
    setFacts(set(), pods, reports, { migratingPods: [migratingPod(...args)] })

  test('shows its state, where its pod runs, and its last move', () => {
    const lastMove = {
      ...{ from: 'web-2', to: 'web-3', reason: 'Migration', seconds: 0.42 },
      at: '2030-01-01T00:50:00Z',
    }
    const text = renderSet(of('Running', 'AllInPlace', { lastMove }), options)
    expect(text).toContain('  migrating pod  Running: web-3 on n1\n')
    expect(text).toContain('  last move      web-2 → web-3 (Migration), 10m ago, no pod ran for 0.42 s\n')
    expect(text).not.toContain('✗')
  })

  test('that is Invalid says why, with the cure', () => {
    const text = renderSet(of('Invalid', 'NameTaken'), options)
    expect(text).toContain(
      '✗ MigratingPod Ready is False (NameTaken): the words\n  → delete the BackupPodSet',
    )
  })

  test('whose Migration waits shows for what, and those of other sets and of before are left out', () => {
    const migrations = [migration('m', 'Preparing', 'MemoryComing'), migration('earlier', 'Succeeded')]
    const text = renderSet(setFacts(set(), pods, reports, { migrations }), options)
    expect(text).toContain(
      '  moves          web-p, n1 → ?: Preparing (MemoryComing: the words), Migration m\n',
    )
    expect(text).not.toContain('earlier')
    const others = setFacts({ ...set(), metadata: { ...set().metadata, name: 'other' } }, [], [], {
      migrations,
    })
    expect(others.moves).toEqual([])
  })
})
