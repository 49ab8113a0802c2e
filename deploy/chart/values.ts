/** The values of the chart: one JSON schema, from which Helm's schema and values.yaml are made. */
import { stringify } from 'yaml'
import { isMap } from './merge.ts'
import type { Tree } from './tokens.ts'

/** A part of a JSON schema. Whatever has no `properties` of its own has a default. */
export interface Schema {
  readonly description?: string
  readonly type?: string | readonly string[]
  readonly default?: Tree
  readonly properties?: Readonly<Record<string, Schema>>
  readonly [keyword: string]: unknown
}

/** Values of the manifests, which are the chart's defaults. */
export interface ManifestDefaults {
  /** Empty: the user has to name one. */
  readonly registry: string
  readonly replicas: Tree
  readonly operatorResources: Tree
  readonly agentResources: Tree
  readonly redisResources: Tree
  readonly redisTag: string
}

const group = (description: string, properties: Readonly<Record<string, Schema>>): Schema => ({
  description,
  type: 'object',
  additionalProperties: false,
  properties,
})
const text = (description: string, value: string, more: object = {}): Schema => ({
  description,
  type: 'string',
  default: value,
  ...more,
})
const choice = (description: string, names: readonly string[]): Schema => ({
  description,
  enum: names,
  default: names[0] ?? '',
})
const flag = (description: string, value: boolean): Schema => ({
  description,
  type: 'boolean',
  default: value,
})
const texts = (description: string, more: object = {}): Schema => ({
  description,
  type: 'array',
  items: { type: 'string', ...more },
  default: [],
})
const words = (description: string): Schema => ({
  description,
  type: 'object',
  additionalProperties: { type: 'string' },
  default: {},
})

const dnsLabel = { pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', maxLength: 63 }

const quantities = { type: 'object', additionalProperties: { type: ['string', 'number'] } }
const resources = (description: string, value: Tree): Schema => ({
  description,
  type: 'object',
  additionalProperties: false,
  properties: {
    requests: { ...quantities, default: isMap(value) ? (value['requests'] ?? {}) : {} },
    limits: { ...quantities, default: isMap(value) ? (value['limits'] ?? {}) : {} },
  },
})

const image = (description: string, repository: string, tag: string): Schema =>
  group(description, {
    repository: text('Path below the registry.', repository, { minLength: 1 }),
    tag: text(
      tag === ''
        ? 'Default: the image that the chart was released with, by digest; the version of a chart that belongs to no release.'
        : 'Its version.',
      tag,
    ),
    digest: text('sha256:…, which counts instead of the tag.', '', { pattern: '^(sha256:[0-9a-f]{64})?$' }),
  })

const logLevels = ['info', 'debug', 'warn', 'error']

export const valuesSchema = (defaults: ManifestDefaults): Schema => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Values of the Understudy chart',
  type: 'object',
  additionalProperties: false,
  properties: {
    // A chart that contains this one writes `global` into its values, and Helm 4 always does.
    global: { type: 'object' },
    images: images(defaults),
    operator: operator(defaults),
    agents: agents(defaults),
    memory: group('Where sets may keep memory.', {
      namespaces: choice(
        'labelled: in namespaces with the label backup.example.com/memory=allowed; all: in every namespace, for clusters of a single tenant.',
        ['labelled', 'all'],
      ),
    }),
    podMigrationJobs: podMigrationJobs(),
    migratingJobs: group('Jobs with `spec.managedBy: backup.example.com/migrating-pod`.', {
      enabled: flag(
        'Keep the memory of those Jobs. Look for CronJobs that ask for it first (docs/install.md).',
        false,
      ),
    }),
    clonePods: group('ClonePods: one copy of a pod with its memory, as a task.', {
      enabled: flag('Install their kind and the rights for them.', false),
    }),
    gate: group("The network policy of cold backups' gates.", {
      namespaces: texts('Namespaces with sets that get the policy. They have to exist.', dnsLabel),
    }),
    stateStore: stateStore(defaults),
    monitoring: monitoring(),
    traces: group('Traces of failovers and moves (docs/operate.md).', {
      endpoint: text(
        'An OpenTelemetry collector that takes OTLP over HTTP, such as http://otel-collector.monitoring:4318. Empty: no traces. Headers may be in the key `headers` of a Secret `understudy-otlp`.',
        '',
        { pattern: '^(https?://.+)?$' },
      ),
    }),
    crds: group('The kinds.', {
      install: flag(
        'Install and upgrade the kinds. False from the start only: Helm deletes the kind NodeReport when it becomes false later.',
        true,
      ),
    }),
    uninstall: group('What `helm uninstall` does first.', {
      sweep: flag('Wait until no node has memory, keys, processes or mounts of Understudy any more.', true),
      timeoutSeconds: {
        description: "Longest wait for all nodes. Helm's own --timeout has to be longer.",
        type: 'integer',
        minimum: 1,
        default: 240,
      },
    }),
  },
})

const images = ({ redisTag, registry }: ManifestDefaults) =>
  group('The images. No registry serves them: put them into one of yours, or load them into the nodes.', {
    registry: text(
      'Required. Such as registry.example/understudy; understudy.invalid for images that the nodes have.',
      registry,
    ),
    pullPolicy: choice('When nodes pull.', ['IfNotPresent', 'Always', 'Never']),
    pullSecrets: texts('Names of Secrets for the registry, in the namespaces of operator and agents.'),
    operator: image('Operator, and the hook of `helm uninstall`.', 'operator', ''),
    agent: image('Agents.', 'agent', ''),
    waker: image(
      'Gate of cold backups. Sets in other namespaces pull it with their own secrets.',
      'waker',
      '',
    ),
    redis: image('Only with stateStore.redis.', 'redis', redisTag),
  })

const operator = ({ replicas, operatorResources }: ManifestDefaults) =>
  group('The operator, in the namespace of the release.', {
    replicas: {
      description: 'With 1 there is no standby, and no disruption budget that would block drains.',
      type: 'integer',
      minimum: 1,
      default: replicas,
    },
    logLevel: choice('Lowest level that is logged.', logLevels),
    extraArgs: texts('More arguments, such as --injected-resources=cpu=20m,memory=48Mi.'),
    resources: resources('Requests and limits.', operatorResources),
    nodeSelector: words('Labels of nodes that may run it.'),
    podAnnotations: words('Annotations of its pods.'),
  })

const agents = ({ agentResources }: ManifestDefaults) =>
  group('The privileged agents, one a node, which save and restore memory.', {
    enabled: flag(
      'False: sets with `checkpoint` wait. Before you switch it off, run `kubectl understudy uninstall`.',
      true,
    ),
    namespace: text(
      'A namespace for the agents alone. Do not change it later: the key of saved memory is in it.',
      'understudy-agents',
      { ...dnsLabel, minLength: 1 },
    ),
    createNamespace: flag(
      'Make that namespace, with the pod security level `privileged`. False from the start only: Helm deletes it when this becomes false later.',
      true,
    ),
    priorityClass: choice(
      'system: system-node-critical; system-with-quota: with a quota that admits it, as some of GKE require; own: a class that the chart makes.',
      ['system', 'system-with-quota', 'own'],
    ),
    logLevel: choice('Lowest level that is logged.', logLevels),
    extraArgs: texts('More arguments, such as --record-writes.'),
    resources: resources('Half of the memory limit is for saved memory.', agentResources),
    nodeSelector: words('Labels of nodes that get an agent, besides kubernetes.io/os=linux.'),
    podAnnotations: words('Annotations of their pods.'),
  })

const podMigrationJobs = () =>
  group(
    'PodMigrationJobs: evictions with budgets. Each of these gives the operator more rights (docs/install.md).',
    {
      enabled: flag('Install their kind and the rights to evict pods.', false),
      reservations: flag('The mode ReservationFirst: the operator makes pods of Deployments.', false),
      preemptions: flag('Pods of lower priority give way to replacements. Needs reservations.', false),
      deletions: flag('`evictionPolicy: Delete`, which asks no disruption budget.', false),
    },
  )

const stateStore = ({ redisResources }: ManifestDefaults) =>
  group('Where history and pulled states outlive the operator.', {
    redis: flag('Install a small Redis.', false),
    url: text('A Redis of yours instead: redis://[user@]host[:port][/db], rediss:// for TLS.', ''),
    passwordSecret: text(
      'Secret with the key `password`, in the namespace of the release. May be empty with a URL.',
      'understudy-state-store',
    ),
    resources: resources('Of the Redis that the chart installs.', redisResources),
  })

const monitoring = () =>
  group('Metrics and alerts. The first three need the kinds of the Prometheus operator.', {
    serviceMonitor: flag('Scrape the operator.', false),
    podMonitor: flag('Scrape the agents.', false),
    prometheusRule: flag('Alerts (docs/health-rules.md lists the stock alerts to switch off).', false),
    dashboard: flag("A ConfigMap with the dashboard, for Grafana's sidecar.", false),
    labels: words('More labels of these objects, by which your Prometheus finds them.'),
    namespace: text('Namespace from which the operator may be scraped.', 'monitoring', {
      ...dnsLabel,
      minLength: 1,
    }),
  })

/** Returns values.yaml: all defaults, each below its description. */
export function valuesFile(schema: Schema): string {
  return `# The values of the chart, at their defaults. values.schema.json checks yours.\n${linesOf(schema, '').join('\n')}\n`
}

function linesOf({ properties = {} }: Schema, indent: string): string[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const { description, properties: inner, default: value } = schema
    const comment = description === undefined ? [] : [`${indent}# ${description}`]
    if (inner !== undefined) return [...comment, `${indent}${name}:`, ...linesOf(schema, `${indent}  `)]
    if (value === undefined) return []
    const lines = stringify({ [name]: value }, { lineWidth: 0 })
      .trimEnd()
      .split('\n')
    return [...comment, ...lines.map(line => `${indent}${line}`)]
  })
}

/** Returns the schema as Helm reads it. */
export const schemaFile = (schema: Schema): string => `${JSON.stringify(schema, null, 2)}\n`
