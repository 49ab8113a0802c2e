/** Alerts and dashboard use only metrics that the code exports. */
import { describe, expect, test } from 'vitest'
import { exported } from './exported-metrics.ts'
import { manifest, text } from './manifests.ts'

interface Use {
  readonly metric: string
  readonly labels: readonly string[]
}

/** Returns our metrics in an expression, with the labels by which the expression selects them. */
const usesIn = (expression: string): Use[] =>
  [
    ...expression.matchAll(
      /\b((?:backuppodset|bps|understudy|leader_election|controller_runtime|workqueue|rest_client|reflector|event_recorder|consistency)_\w+)(?:\{([^}]*)\})?/g,
    ),
  ].map(([, metric = '', selector = '']) => ({
    metric,
    labels: [...selector.matchAll(/(\w+)\s*[=!]~?/g)].map(([, label = '']) => label),
  }))

interface Rule {
  readonly expr: string
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

describe('alerts and dashboard', () => {
  test('name no metric and no label that the code does not have', async () => {
    const known = await exported()
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
