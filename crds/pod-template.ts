/**
 * The schema of spec.template, made from Kubernetes' own OpenAPI document: the full PodTemplateSpec, in the structural
 * form that a CRD needs. Run as a program, it renews `pod-template.schema.json`, so that generating the CRD needs no
 * network.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import type { Schema } from '../src/api/schema/pod-schema.ts'

const kubernetes = 'k8s.io/kubernetes@v1.36.3'

/** The keys to keep. Apply needs the three x-kubernetes- keys to merge lists and maps; the others are not for CRDs. */
const kept = [
  'type',
  'format',
  'enum',
  'required',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'maximum',
  'minimum',
]
const intOrString = { anyOf: [{ type: 'integer' }, { type: 'string' }], 'x-kubernetes-int-or-string': true }
const stringMap = (description: string): Schema => ({
  description,
  type: 'object',
  additionalProperties: { type: 'string' },
})
const special: Readonly<Record<string, Schema>> = {
  'io.k8s.apimachinery.pkg.api.resource.Quantity': {
    ...intOrString,
    pattern: String.raw`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))?$`,
  },
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': intOrString,
  'io.k8s.apimachinery.pkg.apis.meta.v1.Time': { type: 'string', format: 'date-time' },
  // A volume claim template inside a pod (ephemeral volumes) has its own metadata. Undeclared fields are dropped, and
  // Kubernetes allows only these two there.
  'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta': {
    type: 'object',
    properties: {
      labels: stringMap('Labels of the claim.'),
      annotations: stringMap('Annotations of the claim.'),
    },
  },
}

const maxDescription = 300

/**
 * Shortens a description to the meaning of a field: the whole text of all fields would not fit into the annotation of
 * `kubectl apply`. Keeps the first sentence, and the next one if the first says only that the field is required or
 * deprecated.
 */
export function firstSentence(text: string): string {
  const line = text
    .replaceAll(/\s+/g, ' ')
    .trim()
    .replace(/^(Optional|Required)[.:,] /i, '')
  const end = /(?<!^Deprecated)[.](?= [A-Z"`])|\.$/.exec(line)
  const sentence = end ? line.slice(0, end.index) : line
  return sentence.length <= maxDescription
    ? sentence
    : `${sentence.slice(0, maxDescription).replace(/\s+\S*$/, '')} ...`
}

function structural(node: Schema, definitions: Readonly<Record<string, Schema>>): Schema {
  const reference = node['$ref'] ?? (node['allOf'] as Schema[] | undefined)?.[0]?.['$ref']
  if (typeof reference === 'string') {
    const name = reference.slice(reference.lastIndexOf('/') + 1)
    const target = special[name] ?? structural(definitions[name] ?? {}, definitions)
    const description = node['description'] ?? definitions[name]?.['description']
    return typeof description === 'string'
      ? { description: firstSentence(description), ...without(target, 'description') }
      : target
  }
  const out: Record<string, unknown> = {}
  if (typeof node['description'] === 'string') out['description'] = firstSentence(node['description'])
  for (const key of kept) if (node[key] !== undefined) out[key] = node[key]
  if (node['items']) out['items'] = structural(node['items'] as Schema, definitions)
  if (node['additionalProperties'])
    out['additionalProperties'] = structural(node['additionalProperties'] as Schema, definitions)
  if (node['properties']) {
    const properties: Record<string, unknown> = {}
    for (const [name, property] of Object.entries(node['properties'] as Record<string, Schema>))
      properties[name] = structural(property, definitions)
    out['properties'] = properties
  }
  return withMapKeyDefaults(out)
}

/** Every key of a list that is a map must be required or have a default: `protocol` of a port is TCP if absent. */
function withMapKeyDefaults(schema: Record<string, unknown>): Schema {
  const items = schema['items'] as { required?: string[]; properties: Record<string, Schema> } | undefined
  for (const key of (schema['x-kubernetes-list-map-keys'] as string[] | undefined) ?? [])
    if (items && !items.required?.includes(key))
      items.properties[key] = { ...items.properties[key], default: key === 'protocol' ? 'TCP' : '' }
  return schema
}

const without = (schema: Schema, key: string): Schema =>
  Object.fromEntries(Object.entries(schema).filter(([name]) => name !== key))

function podSpec(openapi: { components: { schemas: Record<string, Schema> } }): Schema {
  const definitions = openapi.components.schemas
  return structural(definitions['io.k8s.api.core.v1.PodSpec'] ?? {}, definitions)
}

if (import.meta.main) {
  const committed = new URL('pod-template.schema.json', import.meta.url)
  const module = JSON.parse(
    execFileSync('go', ['mod', 'download', '-json', kubernetes], { encoding: 'utf8' }),
  ) as { Dir: string }
  const file = `${module.Dir}/api/openapi-spec/v3/api__v1_openapi.json`
  writeFileSync(committed, `${JSON.stringify(podSpec(JSON.parse(readFileSync(file, 'utf8'))), null, 1)}\n`)
}
