/** Where the values go into the objects. An edit whose place is gone fails, so that the chart cannot fall behind the manifests. */
import { guarded, idOf, isList, isMap, type Part } from './merge.ts'
import type { Tokens, Tree } from './tokens.ts'

type Change = (value: Tree) => Tree
type Path = readonly (string | number)[]
type Edit = readonly [path: Path, change: Change]

/** Returns the tree with the value at a path changed. @throws if there is no such value */
export function changedAt(tree: Tree, [key, ...rest]: Path, change: Change): Tree {
  if (key === undefined) return change(tree)
  if (typeof key === 'number' && isList(tree) && key < tree.length)
    return tree.map((item, index) => (index === key ? changedAt(item, rest, change) : item))
  const inner = isMap(tree) ? tree[key] : undefined
  if (!isMap(tree) || inner === undefined)
    throw new Error(`there is no ${key} in ${JSON.stringify(tree).slice(0, 200)}`)
  return { ...tree, [key]: changedAt(inner, rest, change) }
}

const pod = ['spec', 'template', 'spec']
const container = [...pod, 'containers', 0]

/** @throws if an object to edit is missing, or has another shape. */
export function withValues(parts: readonly Part[], tokens: Tokens): readonly Part[] {
  const edits = editsOf(tokens)
  const known = new Set(parts.map(({ plain }) => idOf(plain)))
  const missing = Object.keys(edits).filter(id => !known.has(id))
  if (missing.length > 0)
    throw new Error(`the chart has values for objects that are gone: ${missing.join(', ')}`)
  return parts.map(part => {
    const id = idOf(part.plain)
    const tree = (edits[id] ?? []).reduce<Tree>(
      (before, [path, change]) => changedAt(before, path, change),
      part.tree,
    )
    return id === budget
      ? { ...part, tree, conditions: [...part.conditions, 'gt (int .Values.operator.replicas) 1'] }
      : { ...part, tree }
  })
}

/** With a single replica it would block every drain of its node. */
const budget = 'PodDisruptionBudget understudy-system understudy-operator'

const editsOf = (tokens: Tokens): Readonly<Record<string, readonly Edit[]>> => ({
  'Deployment understudy-system understudy-operator': [
    [['spec', 'replicas'], () => tokens.inline('{{ int .Values.operator.replicas }}')],
    ...ofWorkload('operator', 'operator', tokens),
    [[...container, 'args'], args => operatorArgs(args, tokens)],
    [[...container, 'env'], env => operatorEnv(withCollector(env, tokens), tokens)],
    [pod, withMap('nodeSelector', '.Values.operator.nodeSelector', tokens)],
  ],
  'DaemonSet understudy-agents understudy-agent': [
    ...ofWorkload('agents', 'agent', tokens),
    [[...container, 'args'], args => agentArgs(args, tokens)],
    [[...container, 'env'], env => withCollector(env, tokens)],
    [[...pod, 'nodeSelector'], withEntries('.Values.agents.nodeSelector', tokens)],
  ],
  'Deployment understudy-system understudy-redis': [
    ...ofContainer('stateStore', 'redis', tokens),
    [
      [...container, 'env', 0, 'valueFrom', 'secretKeyRef', 'name'],
      () => tokens.inline('{{ .Values.stateStore.passwordSecret | quote }}'),
    ],
  ],
  'NetworkPolicy understudy-system understudy-operator': [
    [
      ['spec', 'ingress', 0, 'from', 0, 'namespaceSelector', 'matchLabels', 'kubernetes.io/metadata.name'],
      () => tokens.inline('{{ .Values.monitoring.namespace | quote }}'),
    ],
  ],
  [budget]: [],
})

const ofContainer = (values: string, image: string, tokens: Tokens): readonly Edit[] => [
  [[...container, 'image'], () => tokens.inline(imageOf(image))],
  [[...container, 'imagePullPolicy'], () => tokens.inline('{{ .Values.images.pullPolicy }}')],
  [[...container, 'resources'], () => block(`.Values.${values}.resources`, tokens)],
  [
    pod,
    map =>
      isMap(map)
        ? {
            ...map,
            [tokens.lines(indent => `{{- include "understudy.pullSecrets" . | nindent ${indent} }}`)]: null,
          }
        : map,
  ],
]

const ofWorkload = (values: string, image: string, tokens: Tokens): readonly Edit[] => [
  ...ofContainer(values, image, tokens),
  [['spec', 'template', 'metadata', 'annotations'], withEntries(`.Values.${values}.podAnnotations`, tokens)],
]

const imageOf = (name: string) => `{{ include "understudy.image" (list . "${name}") }}`

const block = (value: string, tokens: Tokens) =>
  tokens.inline(indent => `{{- toYaml ${value} | nindent ${indent + 2} }}`)

/** Adds the entries of a value to a map. */
const withEntries =
  (value: string, tokens: Tokens): Change =>
  map =>
    isMap(map)
      ? {
          ...map,
          [tokens.lines(indent => `{{- with ${value} }}{{ toYaml . | nindent ${indent} }}{{ end }}`)]: null,
        }
      : map

/** Adds a field to a map, if its value is not empty. */
const withMap =
  (field: string, value: string, tokens: Tokens): Change =>
  map => {
    if (!isMap(map)) return map
    const lines = tokens.lines(indent => {
      const space = ' '.repeat(indent)
      return `{{- with ${value} }}\n${space}${field}: {{- toYaml . | nindent ${indent + 2} }}\n{{- end }}`
    })
    return { ...map, [lines]: null }
  }

/** The manifests leave a flag out where its default is right; the same flags are left out here. */
const flag = (text: string, condition: string, tokens: Tokens) =>
  guarded([tokens.inline(text)], condition, tokens)

const extra = (value: string, tokens: Tokens) =>
  tokens.lines(indent => `{{- range ${value} }}\n${' '.repeat(indent)}- {{ . | quote }}\n{{- end }}`)

const agentNamespace = [
  '--agent-namespace={{ .Values.agents.namespace }}',
  'ne .Values.agents.namespace "understudy-agents"',
] as const

function operatorArgs(args: Tree, tokens: Tokens): Tree {
  if (!isList(args)) return args
  const waker = /^--waker-image=/
  if (!args.some(arg => typeof arg === 'string' && waker.test(arg)))
    throw new Error('the operator has no --waker-image')
  const withWaker = args.map(arg =>
    typeof arg === 'string' && waker.test(arg) ? tokens.inline(`--waker-image=${imageOf('waker')}`) : arg,
  )
  return [
    ...withWaker,
    ...flag(...agentNamespace, tokens),
    ...logLevel('operator', tokens),
    extra('.Values.operator.extraArgs', tokens),
  ]
}

const agentArgs = (args: Tree, tokens: Tokens): Tree =>
  isList(args)
    ? [
        ...args,
        ...flag('--namespace={{ .Values.agents.namespace }}', agentNamespace[1], tokens),
        ...flag(
          '--operator-namespace={{ .Release.Namespace }}',
          'ne .Release.Namespace "understudy-system"',
          tokens,
        ),
        ...logLevel('agents', tokens),
        extra('.Values.agents.extraArgs', tokens),
      ]
    : args

const logLevel = (values: string, tokens: Tokens) =>
  flag(`--log-level={{ .Values.${values}.logLevel }}`, `ne .Values.${values}.logLevel "info"`, tokens)

const named = (name: string) => (item: Tree) => isMap(item) && item['name'] === name

/** The component `traces` has the variable. */
function withCollector(env: Tree, tokens: Tokens): Tree {
  if (!isList(env)) return env
  const endpoint = env.find(named('OTEL_EXPORTER_OTLP_ENDPOINT'))
  if (!isMap(endpoint)) throw new Error('the component traces names no collector')
  const value = () => tokens.inline('{{ .Values.traces.endpoint | quote }}')
  return env.map(item => (item === endpoint ? changedAt(endpoint, ['value'], value) : item))
}

/** The component `redis` has the variables; another Redis needs the same ones. */
function operatorEnv(env: Tree, tokens: Tokens): Tree {
  if (!isList(env)) return env
  const [store, password] = ['UNDERSTUDY_STATE_STORE', 'UNDERSTUDY_STATE_STORE_PASSWORD'].map(name =>
    env.find(named(name)),
  )
  if (!isMap(store) || !isMap(password)) throw new Error('the component redis sets no state store')
  const secretName = () => tokens.inline('{{ .Values.stateStore.passwordSecret | quote }}')
  const withSecret = changedAt(password, ['valueFrom', 'secretKeyRef', 'name'], secretName)
  return [
    ...env.map(item => (item === password ? withSecret : item)),
    ...guarded(
      [{ ...store, value: tokens.inline('{{ .Values.stateStore.url | quote }}') }],
      '.Values.stateStore.url',
      tokens,
    ),
    ...guarded([withSecret], 'and .Values.stateStore.url .Values.stateStore.passwordSecret', tokens),
  ]
}
