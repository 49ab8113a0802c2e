/** Objects of deploy/ that no overlay contains: users apply them where they want them. In the chart they are values. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { deploy, type Kustomize, objectsIn } from './kustomize.ts'
import { isMap, type KubeObject, type Part } from './merge.ts'
import type { Tokens, Tree } from './tokens.ts'

const monitors = {
  'service-monitor': '.Values.monitoring.serviceMonitor',
  'pod-monitor': 'and .Values.agents.enabled .Values.monitoring.podMonitor',
  'prometheus-rule': '.Values.monitoring.prometheusRule',
}

/** Returns the objects for Prometheus and Grafana. */
export async function monitoringParts(tokens: Tokens): Promise<readonly Part[]> {
  const parts = await Promise.all(
    Object.entries(monitors).map(async ([name, condition]) =>
      objectsIn(await readFile(join(deploy, 'alerts', `${name}.yaml`), 'utf8')).map(plain => ({
        ...{ plain, conditions: [condition], file: 'monitoring' },
        tree: { ...plain, metadata: withLabels(plain.metadata, tokens) },
      })),
    ),
  )
  return [...parts.flat(), await dashboard(tokens)]
}

const withLabels = (metadata: { readonly [field: string]: Tree }, tokens: Tokens): Tree => {
  const { labels = {} } = metadata
  if (!isMap(labels)) return metadata
  const more = tokens.lines(
    indent => `{{- with .Values.monitoring.labels }}{{ toYaml . | nindent ${indent} }}{{ end }}`,
  )
  return { ...metadata, labels: { ...labels, [more]: null } }
}

/** The sidecar of Grafana's chart looks for the label. */
async function dashboard(tokens: Tokens): Promise<Part> {
  const name = 'understudy.json'
  const metadata = {
    name: 'understudy-dashboard',
    labels: { 'app.kubernetes.io/part-of': 'understudy', grafana_dashboard: '1' },
  }
  const data = { [name]: await readFile(join(deploy, 'grafana', name), 'utf8') }
  const plain = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }
  const tree = { ...plain, metadata: withLabels(metadata, tokens) }
  return { plain, tree, conditions: ['.Values.monitoring.dashboard'], file: 'monitoring' }
}

/** Returns the policy of the gate, which each namespace with sets needs. */
export async function gatePolicy(kustomize: Kustomize): Promise<KubeObject> {
  const [policy, ...others] = await kustomize({ resources: ['network-policy'] })
  if (policy === undefined || others.length > 0) throw new Error('deploy/network-policy has not one object')
  return policy
}
