// Long because each area of the examination has its cases on the same installation.
import { describe, expect, test } from 'vitest'
import {
  crd,
  daemonSet,
  deployment,
  forbidden,
  healthy,
  key,
  lease,
  missing,
  node,
  places,
  schema,
  schemas,
  there,
} from '../testing/installation.ts'
import { condition, goodConditions, meta, report, set, slotReport } from '../testing/objects.ts'
import { examine } from './doctor.ts'
import type { Installation } from './installation.ts'
import { fieldsOf, type SchemaNode } from './kinds.ts'
import { renderFindings } from './render.ts'
import { tagOf } from './version.ts'

const findings = (over: Partial<Installation>) => examine({ ...healthy, ...over }, places, schemas)
const brokenIn = (over: Partial<Installation>) => findings(over).filter(({ verdict }) => verdict === 'broken')

test('in a healthy installation everything is ok', () => {
  expect(findings({}).filter(({ verdict }) => verdict !== 'ok')).toEqual([])
})

describe('each of these is broken, and says how it is cured', () => {
  const n1 = (over: Parameters<typeof report>[1]) => ({
    reports: there([report('n1', over), report('n2')]),
  })
  const bad = { name: 'canary', ok: false, message: 'not restored', cure: 'use another kernel' }
  test.each<[string, Partial<Installation>, string, string]>([
    [
      'no kind',
      { crds: { ...healthy.crds, backuppodsets: missing } },
      'backuppodsets',
      'kubectl apply -k deploy/',
    ],
    [
      'an older kind',
      { crds: { ...healthy.crds, nodereports: crd({}) } },
      'nodereports',
      'kubectl apply -k crds/',
    ],
    ['no operator', { operator: missing }, 'deployment', '--operator-namespace'],
    ['an operator that does not run', { operator: deployment(0) }, 'deployment', 'describe deployment,pod'],
    ['no standby', { operator: deployment(1) }, 'deployment', 'describe pod'],
    ['no leader', { leadership: missing }, 'leader', 'logs deployment/understudy-operator'],
    ['a leader of old', { leadership: lease('2030-01-01T00:59:30Z') }, 'leader', 'logs'],
    ['a lease that was given back', { leadership: lease('2030-01-01T00:59:59Z', '') }, 'leader', 'logs'],
    ['no wake key', { wakeKey: missing }, 'wake key', 'rollout restart'],
    ['half a wake key', { wakeKey: key(16) }, 'wake key', 'delete secret'],
    ['no agents, where sets want memory', { agents: missing }, 'daemonset', 'kubectl apply -k deploy/agent'],
    ['an agent that is not ready', { agents: daemonSet(1) }, 'daemonset', 'get pods'],
    ['agents of another version', { agents: daemonSet(2, '0.2.0') }, 'version', 'one version'],
    ['a node without a report', { reports: there([report('n1')]) }, 'n2', 'DaemonSet understudy-agent'],
    ['a check that fails', n1({ checks: [bad] }), 'n1 canary', 'use another kernel'],
    ['an agent that is silent', n1({ updatedAt: '2030-01-01T00:58:00Z' }), 'n1 agent', 'clock'],
    ['a node without its label', { nodes: there([node('n1', false), node('n2')]) }, 'n1 label', 'operator'],
    [
      'a set in trouble',
      {
        sets: there([set({ conditions: [condition('CheckpointReady', 'False', 'NoUnderstudy', 'slot 0')] })]),
      },
      'shop/web CheckpointReady',
      'raise hotBackups',
    ],
    [
      'a set that is refused',
      {
        sets: there([
          set({}, { template: { spec: { containers: [{ name: 'app', image: 'a', tty: true }] } } }),
        ]),
      },
      'shop/web',
      'change the set',
    ],
  ])('%s', (_, over, about, cure) => {
    const [first, ...others] = brokenIn(over)
    expect(first).toMatchObject({ about })
    expect(first?.cure).toContain(cure)
    expect(others).toEqual([])
  })
})

describe('these are not broken', () => {
  const found = (over: Partial<Installation>, verdict: string) =>
    findings(over)
      .filter(finding => finding.verdict === verdict)
      .map(({ about, message }) => `${about}: ${message}`)

  test('what may not be read is unknown, never well', () => {
    const hidden = { operator: forbidden, leadership: forbidden, wakeKey: forbidden, agents: forbidden }
    expect(brokenIn({ ...hidden, reports: forbidden, nodes: forbidden })).toEqual([])
    expect(found({ ...hidden, reports: forbidden }, 'unknown')).toHaveLength(5)
  })

  test('§7.6: a node that is no Linux has no agent', () => {
    const windows = node('w')
    const labels = { ...windows.metadata.labels, 'kubernetes.io/os': 'windows' }
    const other = { ...windows, metadata: { ...windows.metadata, labels } }
    const over = { nodes: there([node('n1'), node('n2'), other]) }
    expect(brokenIn(over)).toEqual([])
    expect(found(over, 'note')).toEqual(['w: not a Linux node: no agent runs there, and it keeps no memory'])
  })

  test('a wake key of before beside the current one', () => {
    const both = (length: number) => {
      const data = {
        key: Buffer.alloc(32).toString('base64'),
        previous: Buffer.alloc(length).toString('base64'),
      }
      return { wakeKey: there({ metadata: meta('wake-key'), data }) }
    }
    expect(brokenIn(both(32))).toEqual([])
    expect(brokenIn(both(8))).toMatchObject([
      { about: 'wake key', cure: expect.stringContaining('/data/previous') },
    ])
  })

  test('no agents, where no set wants memory', () => {
    const { checkpoint: _, ...spec } = set().spec
    const plain = { ...set({ conditions: goodConditions.slice(0, 4) }), spec }
    const over = { agents: missing, reports: there([]), sets: there([plain]) }
    expect(brokenIn(over)).toEqual([])
    expect(found(over, 'note')).toEqual([
      'daemonset: there is no DaemonSet understudy-agent in understudy-agents; no set asks for memory',
      'shop/web memory: not kept, but it could be: add `checkpoint: {}` to its spec',
    ])
  })

  test('something to know of memory that is kept', () => {
    const caveat = condition('CheckpointReady', 'True', 'DiskAheadOfMemory', 'the disk is ahead')
    const kept = set({ conditions: [...goodConditions.slice(0, 4), caveat] })
    const sets = { ok: true, value: [kept] } as const
    expect(brokenIn({ sets })).toEqual([])
    expect(found({ sets }, 'note')).toEqual([
      'shop/web CheckpointReady: DiskAheadOfMemory: the disk is ahead',
    ])
    expect(found({ sets }, 'ok')).toContain('shop/web: all conditions are as expected')
  })

  test('a template that memory refuses says why', () => {
    const { checkpoint: _, ...spec } = set().spec
    const template = { spec: { shareProcessNamespace: true, containers: [{ name: 'app', image: 'a' }] } }
    const plain = { ...set({ conditions: goodConditions.slice(0, 4) }), spec: { ...spec, template } }
    expect(found({ sets: there([plain]) }, 'note')[0]).toContain('remove template.spec.shareProcessNamespace')
  })

  test('a kind that has more fields than this program knows', () => {
    const more = { properties: { ...schema.properties, status: {} } }
    expect(found({ crds: { ...healthy.crds, backuppodsets: crd(more) } }, 'note')[0]).toContain(
      'does not know status',
    )
  })

  test('rights that are missing are named with the command that needs them', () => {
    const rights = healthy.rights.map(right =>
      right.verb === 'delete' ? { ...right, allowed: false } : right,
    )
    expect(found({ rights }, 'note')).toEqual(['promote: jane may not: delete pods in shop'])
  })

  test('a set that is on its way', () => {
    const conditions = [condition('Progressing', 'True', 'Converging', '1 of 2')]
    expect(brokenIn({ sets: there([set({ conditions })]) })).toEqual([])
  })
})

describe('what this project has never tried', () => {
  const unproven = (over: Partial<Installation>) =>
    findings(over)
      .filter(({ verdict }) => verdict === 'unproven')
      .map(({ about }) => about)
  const checks = (canary: boolean) => [
    { name: 'cgroups', ok: true, message: 'v2' },
    { name: 'canary', ok: canary, message: '' },
  ]

  test('is marked until the canary of the node has passed', () => {
    const of = (canary: boolean) => ({
      reports: there([report('n1', { checks: checks(canary) }), report('n2')]),
    })
    expect(unproven(of(false))).toEqual(['n1 cgroup v2'])
    expect(unproven(of(true))).toEqual([])
  })

  test('another runtime is marked until the node has kept memory', () => {
    const nodes = there([node('n1', true, 'cri-o://1.36.0'), node('n2')])
    expect(unproven({ nodes })).toEqual(['n1 runtime'])
    const kept = there([report('n1', { slots: [slotReport({})] }), report('n2')])
    expect(unproven({ nodes, reports: kept })).toEqual([])
  })
})

test('the print is by area, a node of which all is well is one line, and the sum stands at the end', () => {
  const checks = [{ name: 'canary', ok: false, message: 'not restored', cure: 'use another kernel' }]
  const text = renderFindings(
    findings({ reports: there([report('n1', { checks }), report('n2')]) }),
    (_, it) => it,
    false,
  )
  expect(text).toContain('  ✗ n1 canary: not restored\n      → use another kernel')
  expect(text).toContain('  ✓ n2: 2 checks pass; canary: saved in 9.1 ms')
  expect(text.split('\n').filter(line => /^\w/.test(line))).toEqual([
    'cluster', 'kinds', 'operator', 'agents', 'nodes', 'sets', 'moves', 'you', '1 broken',
  ]) // biome-ignore format: one line says it
})

test('fields are named with their path, those of the pod template are not', () => {
  const deep: SchemaNode = {
    properties: {
      spec: {
        properties: {
          template: { properties: { spec: {} } },
          ports: { items: { properties: { port: {} } } },
        },
      },
    },
  }
  expect([...fieldsOf(deep)]).toEqual(['spec', 'spec.template', 'spec.ports', 'spec.ports[].port'])
})

test.each([
  ['understudy.invalid/operator:0.1.0', '0.1.0'],
  ['registry:5000/understudy/operator', undefined],
  ['registry:5000/understudy/operator:0.2.0@sha256:00', '0.2.0'],
  ['understudy.invalid/operator@sha256:00', undefined],
])('the tag of %s', (image, tag) => {
  expect(tagOf(image)).toBe(tag)
})

describe('a LimitRange with a minimum above what is added to pods', () => {
  const limits = (min: Readonly<Record<string, string>>, namespace = 'shop') =>
    there([{ metadata: { ...meta('least'), namespace }, spec: { limits: [{ type: 'Container', min }] } }])
  const resources = { limits: { memory: '1Gi' } }
  const [plain] = [set()]
  const sized = {
    ...plain,
    spec: { ...plain.spec, template: { spec: { containers: [{ name: 'app', image: 'app', resources }] } } },
  }
  const sets = there([sized])

  test('is broken, and the cure is an argument of the operator', () => {
    expect(brokenIn({ sets, limitRanges: limits({ memory: '48Mi', cpu: '10m' }) })).toMatchObject([
      { about: 'shop/least', cure: 'start the operator with --injected-resources=memory=48Mi' },
    ])
    expect(brokenIn({ sets, limitRanges: limits({ cpu: '0.1' }) })).toHaveLength(1)
  })

  test.each([
    ['a lower one', { sets, limitRanges: limits({ memory: '32Mi' }) }],
    ['one of a namespace without sets', { sets, limitRanges: limits({ memory: '1Gi' }, 'other') }],
    ['a template without resources', { limitRanges: limits({ memory: '1Gi' }) }],
  ])('is not: %s', (_, over) => {
    expect(brokenIn(over)).toEqual([])
  })

  test('the argument counts', () => {
    const args = ['operator', '--injected-resources=memory=64Mi']
    const operator = deployment(2)
    if (!operator.ok) throw new Error('there is one')
    const containers = operator.value.spec?.template.spec?.containers.map(each => ({ ...each, args })) ?? []
    const given = there({
      ...operator.value,
      spec: { replicas: 2, selector: {}, template: { spec: { containers } } },
    })
    expect(brokenIn({ sets, operator: given, limitRanges: limits({ memory: '32Mi' }) })).toEqual([])
  })
})
