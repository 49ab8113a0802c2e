/** Alerts and dashboard use only metrics that the code exports. */
import { describe, expect, test } from 'vitest'
import { exported, exporters, kitMetrics, ownMetrics } from '../../../deploy/exported-metrics.ts'
import { withMetrics } from '../../../deploy/metrics.ts'
import { manifest, text } from './manifests.ts'

interface Use {
  readonly metric: string
  readonly labels: readonly string[]
}

/** Returns our metrics in an expression, with the labels by which the expression selects them. */
const usesIn = (expression: string): Use[] =>
  [
    ...expression.matchAll(
      /\b((?:understudy|leader_election|controller_runtime|workqueue|rest_client|reflector|event_recorder|consistency)_\w+)(?:\{([^}]*)\})?/g,
    ),
  ].map(([, metric = '', selector = '']) => ({
    metric,
    labels: [...selector.matchAll(/(\w+)\s*[=!]~?/g)].map(([, label = '']) => label),
  }))

interface Rule {
  readonly expr: string
  readonly alert?: string
  readonly annotations?: Readonly<Record<string, string>>
}
const rules = await manifest<{ spec: { groups: { rules: Rule[] }[] } }>('deploy/alerts/prometheus-rule.yaml')
const dashboard = JSON.parse(await text('deploy/grafana/understudy.json')) as {
  panels: { title: string; gridPos: { x: number; y: number; w: number; h: number }; targets?: Rule[] }[]
  templating: { list: { query?: { query?: string } | string }[] }
}
const variables = dashboard.templating.list.flatMap(({ query }) =>
  typeof query === 'object' && query.query !== undefined ? [query.query] : [],
)
const expressions = [
  ...rules.spec.groups.flatMap(group => group.rules.map(({ expr }) => expr)),
  ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...variables,
]
// Labels that Prometheus adds from the scrape target.
const scraped = ['pod', 'job', 'instance', 'node', 'le']

describe('D19.metrics: our own metrics', () => {
  const own = exporters.flatMap(ownMetrics)

  test('have one prefix, and end as their type and unit demand', () => {
    expect(own.length).toBeGreaterThan(40)
    expect(own.filter(({ name }) => !name.startsWith('understudy_'))).toEqual([])
    expect(own.filter(({ type, name }) => (type === 'counter') !== name.endsWith('_total'))).toEqual([])
    const ofTheKit = kitMetrics().map(({ name }) => name)
    expect(ofTheKit.filter(name => name.startsWith('understudy_'))).toEqual([])
  })

  test('name a set by namespace and set, or not at all', () => {
    const labelsOfSets = own.filter(({ labels }) =>
      labels.some(label => ['namespace', 'set', 'name'].includes(label)),
    )
    expect(labelsOfSets.length).toBeGreaterThan(6)
    for (const { labels } of labelsOfSets) expect(labels.slice(0, 2)).toEqual(['namespace', 'set'])
  })

  test('are in the table of docs/metrics.md', async () => {
    const page = await text('docs/metrics.md')
    expect(withMetrics(page)).toBe(page)
  })
})

describe('D19.shown: alerts and dashboard', () => {
  test('name no metric and no label that the code does not have', async () => {
    const known = exported()
    const uses = expressions.flatMap(usesIn)
    expect(uses.length).toBeGreaterThan(25)
    const wrong = uses.filter(({ metric, labels }) => {
      const plain = metric.replace(/_(bucket|sum|count)$/, '')
      const found =
        known.get(metric) ?? (known.get(plain)?.type === 'histogram' ? known.get(plain) : undefined)
      return found === undefined || labels.some(label => ![...found.labels, ...scraped].includes(label))
    })
    expect(wrong).toEqual([])
  })

  test('a panel about sets shows those that are chosen, one about agents those on the chosen nodes', () => {
    const known = exported()
    const ofAgents = new Set(ownMetrics('agent').map(({ name }) => name))
    const plainOf = (metric: string) =>
      known.has(metric) ? metric : metric.replace(/_(bucket|sum|count)$/, '')
    const uses = dashboard.panels.flatMap(({ title, targets = [] }) =>
      targets.flatMap(({ expr }) =>
        usesIn(expr).map(use => ({ title, ...use, metric: plainOf(use.metric) })),
      ),
    )
    const ofSets = uses.filter(({ metric }) => known.get(metric)?.labels.includes('set'))
    expect(ofSets.length).toBeGreaterThan(6)
    expect(ofSets.filter(({ labels }) => !(labels.includes('namespace') && labels.includes('set')))).toEqual(
      [],
    )
    const ofNodes = uses.filter(({ metric }) => ofAgents.has(metric) && metric !== 'understudy_build_info')
    expect(ofNodes.length).toBeGreaterThan(9)
    expect(ofNodes.filter(({ labels }) => !labels.includes('node'))).toEqual([])
  })

  test('no two panels lie over each other', () => {
    const boxes = dashboard.panels.map(({ title, gridPos }) => ({ title, ...gridPos }))
    const overlaps = boxes.flatMap((a, i) =>
      boxes
        .slice(i + 1)
        .filter(b => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h)
        .map(b => `${a.title} / ${b.title}`),
    )
    expect(overlaps).toEqual([])
  })
})

describe('D19.runbooks: each alert', () => {
  const base = 'https://understudy.invalid/docs/'
  const alerts = rules.spec.groups
    .flatMap(group => group.rules)
    .flatMap(({ alert, annotations }) =>
      alert === undefined ? [] : [{ alert, url: annotations?.['runbook_url'] }],
    )

  test('has a section of docs/runbooks.md, to which it links', async () => {
    const sections = [...(await text('docs/runbooks.md')).matchAll(/^## (\w+)$/gm)].map(([, name]) => name)
    expect(alerts.map(({ alert }) => alert).sort()).toEqual(sections.toSorted())
    for (const { alert, url } of alerts) expect(url).toBe(`${base}runbooks.md#${alert.toLowerCase()}`)
  })
})
