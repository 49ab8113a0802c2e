/** Makes the Helm chart from the kustomizations, so that no manifest exists twice. */
import { readFile } from 'node:fs/promises'
import { stringify } from 'yaml'
import packageJson from '../../package.json' with { type: 'json' }
import { changedAt, withValues } from './edits.ts'
import { gatePolicy, monitoringParts } from './extras.ts'
import type { Kustomize } from './kustomize.ts'
import { idOf, isMap, type KubeObject, type Part } from './merge.ts'
import { withNamespaces } from './namespaces.ts'
import { partsOf } from './parts.ts'
import { createTokens, type Tokens, type Tree } from './tokens.ts'
import { type ManifestDefaults, schemaFile, valuesFile, valuesSchema } from './values.ts'

export const chartName = 'understudy'

/** The release that a chart belongs to. */
export interface ChartRelease {
  /** Where its images are published. */
  readonly registry?: string | undefined
  /** Digests of its images, by name. */
  readonly digests?: Readonly<Record<string, string>>
}

const written = {
  'templates/_helpers.tpl': '_helpers.tpl',
  'templates/check.yaml': 'check.yaml.tpl',
  'templates/uninstall.yaml': 'uninstall.yaml.tpl',
  'templates/NOTES.txt': 'NOTES.txt.tpl',
}

/**
 * Returns the files of the chart by their paths in it. The same kustomizations give the same bytes.
 *
 * @throws if the kustomizations contain what the chart cannot express.
 */
export async function chartFiles(
  kustomize: Kustomize,
  release: ChartRelease = {},
): Promise<ReadonlyMap<string, string>> {
  const tokens = createTokens()
  const parts = await partsOf(kustomize, tokens)
  const schema = valuesSchema(defaultsOf(parts, release))
  const all = [...withValues(parts, tokens), ...(await monitoringParts(tokens))]
  const files = new Map([
    ['Chart.yaml', stringify({ ...chart, ...annotationsOf(release) })],
    ['values.yaml', valuesFile(schema)],
    ['values.schema.json', schemaFile(schema)],
  ])
  for (const [path, name] of Object.entries(written))
    files.set(path, await readFile(new URL(`files/${name}`, import.meta.url), 'utf8'))
  for (const [file, ofFile] of Map.groupBy(all, ({ file }) => file))
    files.set(`templates/${file}.yaml`, ofFile.map(part => documentOf(part, tokens)).join(''))
  return files.set('templates/gate.yaml', gateTemplate(await gatePolicy(kustomize), tokens))
}

const chart = {
  apiVersion: 'v2',
  name: chartName,
  description: packageJson.description,
  type: 'application',
  version: packageJson.version,
  appVersion: packageJson.version,
  // Admission policies in v1. Memory and cold backups need no later version.
  kubeVersion: '>=1.30.0-0',
}

/** Beginning of the annotations of a chart that has the digest of an image behind it. */
export const digestAnnotation = 'backup.example.com/digest-'

/** No values: users who set a tag mean it, and a digest among the values would count more. */
const annotationsOf = ({ digests = {} }: ChartRelease) => {
  const annotations = Object.fromEntries(
    Object.entries(digests).map(([name, digest]) => [`${digestAnnotation}${name}`, digest]),
  )
  return Object.keys(annotations).length === 0 ? {} : { annotations }
}

function defaultsOf(parts: readonly Part[], { registry = '' }: ChartRelease): ManifestDefaults {
  const at = (id: string, ...path: (string | number)[]): Tree => {
    const part = parts.find(({ plain }) => idOf(plain) === id)
    let found: Tree = null
    if (part === undefined) throw new Error(`${id} is gone`)
    changedAt(part.plain, path, value => {
      found = value
      return value
    })
    return found
  }
  const container = ['spec', 'template', 'spec', 'containers', 0]
  const deployment = (name: string) => `Deployment understudy-system understudy-${name}`
  const [operator, redis] = [deployment('operator'), deployment('redis')]
  return {
    registry,
    replicas: at(operator, 'spec', 'replicas'),
    operatorResources: at(operator, ...container, 'resources'),
    agentResources: at('DaemonSet understudy-agents understudy-agent', ...container, 'resources'),
    redisResources: at(redis, ...container, 'resources'),
    redisTag: String(at(redis, ...container, 'image')).replace(/^.*:/, ''),
  }
}

function documentOf({ plain, tree, conditions }: Part, tokens: Tokens): string {
  const isKind = plain.kind === 'CustomResourceDefinition'
  const text = isKind ? tokens.write(kept(plain)) : tokens.write(withNamespaces(tree, plain, tokens))
  const [first = '', ...others] = conditions
  const all = others.length === 0 ? first : `and ${conditions.map(it => `(${it})`).join(' ')}`
  return all === '' ? `---\n${text}\n` : `{{- if ${all} }}\n---\n${text}\n{{- end }}\n`
}

/** With this kind go only reports of agents, which a new installation must not find. */
const notKept = 'nodereports.backup.example.com'

/** Deleting a kind deletes all of its objects, and those are the users'. */
function kept(plain: KubeObject): Tree {
  const { annotations = {} } = plain.metadata
  if (plain.metadata.name === notKept || !isMap(annotations)) return plain
  const more = { ...annotations, 'helm.sh/resource-policy': 'keep' }
  return { ...plain, metadata: { ...plain.metadata, annotations: more } }
}

function gateTemplate(policy: KubeObject, tokens: Tokens): string {
  const metadata = { ...policy.metadata, namespace: tokens.inline('{{ . | quote }}') }
  const text = tokens.write(withNamespaces({ ...policy, metadata }, policy, tokens))
  return `{{- range .Values.gate.namespaces }}\n---\n${text}\n{{- end }}\n`
}
