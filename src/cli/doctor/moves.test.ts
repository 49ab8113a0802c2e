import { describe, expect, test } from 'vitest'
import { migrationReasons } from '../../api/migration-reasons.ts'
import {
  deployment,
  forbidden,
  healthy,
  missing,
  node,
  places,
  schemas,
  there,
} from '../testing/installation.ts'
import { budget, cordoned, job, keptPrimary, migratingPod, migration } from '../testing/moves.ts'
import { examine } from './doctor.ts'
import { mostListed } from './finding.ts'
import type { Installation } from './installation.ts'

const findings = (over: Partial<Installation>) =>
  examine({ ...healthy, ...over }, places, schemas).filter(({ area }) => ['moves', 'kinds'].includes(area))
const told = (over: Partial<Installation>, wanted: string) =>
  findings(over).flatMap(({ verdict, about, message, cure }) =>
    verdict === wanted ? [`${about}: ${message}${cure === undefined ? '' : ` → ${cure}`}`] : [],
  )

const served = (() => {
  const found = deployment(2)
  if (!found.ok) throw new Error('there is one')
  const containers = found.value.spec?.template.spec?.containers.map(each => ({
    ...each,
    args: ['operator', '--pod-migration-jobs'],
  }))
  return there({
    ...found.value,
    spec: { replicas: 2, selector: {}, template: { spec: { containers: containers ?? [] } } },
  })
})()
const withJobs = { operator: served, crds: { ...healthy.crds, podmigrationjobs: healthy.crds.migrations } }

describe('D18.migrations: doctor says of a Migration', () => {
  test.each([
    ['NoNode', 'uncordon a node'],
    ['Unschedulable', 'make room'],
    ['SetPaused', 'set spec.paused of its BackupPodSet to false'],
    ['NotSaved', 'remove what the message names'],
  ])('that it waits with %s until a user acts', (reason, cure) => {
    const [first, ...others] = told({ migrations: there([migration('m', 'Preparing', reason)]) }, 'broken')
    expect(first).toMatch(new RegExp(`^shop/m: Preparing: ${reason}: the words → .*${cure}`))
    expect(others).toEqual([])
  })

  test('that it waits for others, or is on its way, which is no fault', () => {
    const migrations = there([
      migration('a', 'Pending', 'NodeBudget'),
      migration('b', 'Preparing', 'MemoryComing'),
    ])
    expect(told({ migrations }, 'broken')).toEqual([])
    expect(told({ migrations }, 'note')).toEqual([
      expect.stringContaining('shop/a: Pending: NodeBudget: the words → no action needed'),
      'shop/b: Preparing: MemoryComing: the words',
    ])
  })

  test('that no operator has seen it, but only after some time', () => {
    const young = migration('m', undefined, '', { at: '2030-01-01T00:59:55Z' })
    expect(told({ migrations: there([young]) }, 'note')).toEqual([
      'shop/m: is new: no operator has seen it yet',
    ])
    expect(told({ migrations: there([migration('m', undefined)]) }, 'broken')[0]).toContain(
      'no operator has seen it: no pod moves',
    )
  })

  test('that the last one of a pod has failed, and not that an earlier one had', () => {
    const failed = migration('a', 'Failed', 'TargetFailed', { at: '2030-01-01T00:01:00Z' })
    expect(told({ migrations: there([failed]) }, 'note')).toEqual([
      'shop/a: failed: TargetFailed: the words → remove what the message names, and create another Migration',
    ])
    for (const phase of ['Succeeded', 'Pending'] as const)
      expect(told({ migrations: there([failed, migration('b', phase)]) }, 'note').join()).not.toContain(
        'failed',
      )
  })

  test('each reason, without the word undefined', () => {
    for (const reason of migrationReasons)
      for (const phase of ['Pending', 'Preparing', 'Failed'] as const)
        expect(
          JSON.stringify(findings({ migrations: there([migration('m', phase, reason)]) })),
        ).not.toContain('undefined')
  })

  test('no more than a page, broken ones first', () => {
    const many = Array.from({ length: mostListed + 5 }, (_, index) =>
      migration(`a${index}`, 'Pending', 'SetBusy', { pod: `p${index}` }),
    )
    const all = findings({ migrations: there([...many, migration('z', 'Reserving', 'NoNode')]) })
    const listed = all.filter(({ area }) => area === 'moves').map(({ about }) => about)
    expect(listed[0]).toBe('shop/z')
    expect(listed).toContain('more')
    expect(told({ migrations: there([...many, migration('z', 'Reserving', 'NoNode')]) }, 'note')).toContain(
      'more: 6 further ones are left out',
    )
  })
})

describe('D18.drains: doctor says of a drained node', () => {
  const drained = { nodes: there([cordoned(node('n1')), node('n2')]), primaries: there([keptPrimary()]) }

  test.each([
    ['has none, which no operator that leads leaves so', [], 'it has no Migration'],
    ['waits for a user', [migration('m', 'Pending', 'SetPaused', { drains: 'n1' })], 'SetPaused: the words'],
    [
      'has failed, and the next one follows',
      [migration('m', 'Failed', 'NoNode', { drains: 'n1' })],
      'NoNode',
    ],
  ])('that its drain waits, if the Migration of a primary %s', (_, all, why) => {
    const [first] = told({ ...drained, migrations: there(all) }, 'broken')
    expect(first).toContain(
      'drain of n1: 1 primaries with memory have not left it (it is cordoned); 1 of them wait. shop/web-p: ',
    )
    expect(first).toContain(why)
    expect(first).toContain('`kubectl uncordon n1`')
  })

  test('that its primaries move', () => {
    const migrations = there([migration('m', 'Stopping', 'Stopping', { drains: 'n1' })])
    expect(told({ ...drained, migrations }, 'broken')).toEqual([])
    expect(told({ ...drained, migrations }, 'note')[0]).toContain('they move')
  })

  test.each([
    [
      'its primaries stay',
      { nodes: there([cordoned(node('n1'), { 'backup.example.com/stay-requested': 'yes' })]) },
    ],
    ['it has none', { primaries: there([]) }],
    ['nodes may not be read', { nodes: forbidden }],
  ])('nothing, if %s', (_, over) => {
    expect(told({ ...drained, ...over }, 'broken')).toEqual([])
  })
})

describe('D18.moving-pods: doctor says of a MigratingPod', () => {
  test.each([
    ['NameTaken', 'delete the BackupPodSet of that name'],
    ['SetRefused', 'change the MigratingPod, or its namespace'],
    ['TooManyPods', 'no action needed'],
  ])('that it is Invalid: %s', (reason, cure) => {
    const [first] = told({ migratingPods: there([migratingPod('Invalid', reason)]) }, 'broken')
    expect(first).toMatch(new RegExp(`^shop/web \\(MigratingPod\\): Invalid: ${reason}: the words → ${cure}`))
  })

  test('where it runs, that it moves, and that no operator has seen it', () => {
    expect(told({ migratingPods: there([migratingPod('Running')]) }, 'ok')).toContain(
      'shop/web (MigratingPod): web-3 runs on node n1',
    )
    const moves = migratingPod('Migrating', 'PodsMissing', { migration: 'm' })
    expect(told({ migratingPods: there([moves]) }, 'note')).toEqual([
      'shop/web (MigratingPod): Migrating: Migration m; its last pod is web-3',
    ])
    expect(told({ migratingPods: there([migratingPod(undefined)]) }, 'broken')[0]).toContain('it has no pod')
  })
})

describe('D18.jobs: doctor says of PodMigrationJobs', () => {
  test('that the component is not installed, which is no fault', () => {
    expect(told({}, 'ok').join()).toContain('podmigrationjobs: the component is not installed')
    expect(told({}, 'broken')).toEqual([])
  })

  test.each<[string, Partial<Installation>]>([
    ['the operator ignores jobs', { ...withJobs, operator: healthy.operator }],
    ['the cluster does not have the kind', { operator: served }],
  ])('that one half of the component is missing: %s', (words, over) => {
    const [first] = told(over, 'broken')
    expect(first).toContain(words)
    expect(first).toContain('→ apply an overlay with `components: [../deploy/pod-migration-jobs]`')
  })

  test('that a job waits and why, that none has seen it, and that it has failed', () => {
    const jobs = there([
      job('a', 'Pending', 'InvalidConfiguration'),
      job('b', 'Pending', 'Paused'),
      job('c', undefined),
      job('d', 'Failed', 'Timeout'),
      job('e', 'Succeed'),
    ])
    expect(told({ ...withJobs, jobs }, 'broken')).toEqual([
      expect.stringContaining('job a: Pending: InvalidConfiguration: the words → repair the ConfigMap'),
      expect.stringContaining('job c: no operator has seen it'),
    ])
    expect(told({ ...withJobs, jobs }, 'note')).toEqual([
      'job b: Pending: Paused: the words → set spec.paused of the job to false',
      'job d: failed: Timeout: the words',
    ])
  })
})

describe('D18.budgets: doctor says of a disruption budget of a user', () => {
  const primaries = there([keptPrimary()])
  const mine = budget('mine', { 'backup.example.com/backuppodset': 'web' })
  const own = budget('web-primaries', { 'backup.example.com/role': 'primary' })

  test('that it selects primaries, so that the set has none of its own', () => {
    expect(told({ primaries, budgets: there([mine]) }, 'note')[0]).toMatch(
      /^budget shop\/mine: selects web-p: the set has no budget of its own.* → .*NotIn, values: \[primary\]/,
    )
  })

  test('that no eviction can succeed beside that of the set', () => {
    expect(told({ primaries, budgets: there([own, mine]) }, 'broken')[0]).toContain(
      'budget shop/mine: selects web-p, which the budget web-primaries selects, too',
    )
  })

  test.each([
    ['it is that of the set', [own]],
    ['it selects no primary', [budget('mine', { app: 'other' })]],
    ['it is in another namespace', [{ ...mine, metadata: { ...mine.metadata, namespace: 'other' } }]],
  ])('nothing, if %s', (_, budgets) => {
    expect(findings({ primaries, budgets: there(budgets) })).toEqual(findings({ primaries }))
  })
})

test('D18.kinds: a kind of moves that is missing or older is broken, and what may not be read is unknown', () => {
  const without = { crds: { ...healthy.crds, migrations: missing }, migrations: missing }
  expect(told(without, 'broken')).toEqual([
    'migrations: the cluster does not have this kind → run `kubectl apply -k deploy/`',
  ])
  const all = { migrations: forbidden, migratingPods: forbidden, jobs: forbidden, budgets: forbidden }
  expect(told({ ...all, primaries: there([keptPrimary()]) }, 'broken')).toEqual([])
  expect(told({ ...all, primaries: there([keptPrimary()]) }, 'unknown')).toHaveLength(4)
})
