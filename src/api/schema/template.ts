/** The schema of spec.template: Kubernetes' own, plus rules that refuse templates which cannot work in a set. */

import type { PodTemplate } from '../backuppodset.ts'
import { refusals } from '../errors.ts'
import { gateContainerName } from '../gate.ts'
import { labels, prefix } from '../labels.ts'
import { rule, type Schema, type SchemaOf, text } from './build.ts'
import { readPodSchema } from './pod-schema.ts'

interface PodSchema extends Schema {
  readonly properties: Readonly<Record<string, Schema>>
}

/** Bounds that keep the estimated cost of the rules within its limit; Kubernetes itself has none. */
const maxContainers = 64
/** Linux has 41 capabilities; the longest name has 22 letters with its prefix. */
const maxCapabilities = 64
const maxCapabilityName = 32
const maxLabels = 128
const maxPorts = 128
const maxMounts = 256
const maxVolumes = 512
const maxResources = 64
const maxGates = 64

/**
 * Bounds of all other lists of the template, by name. Kubernetes bounds none of them except by the 1.5 MiB of an
 * object. These bounds are far above any pod that works. They keep a tenant from choosing how much work a pass, a hash
 * and a watcher have.
 */
const maxItems: Readonly<Record<string, number>> = {
  // Node names, for clusters larger than Kubernetes is made for.
  values: 8192,
  namespaces: 4096,
  // A shell accepts longer lists of words, but people do not write them.
  command: 4096,
  args: 4096,
  env: 4096,
  // Keys of a ConfigMap, which has 1 MiB.
  items: 4096,
}
const maxOthers = 1024

/** Returns the schema with a bound for each list that has none. */
function bounded(node: Schema, name = ''): Schema {
  const out: Record<string, unknown> = { ...node }
  if (node['type'] === 'array') out['maxItems'] ??= maxItems[name] ?? maxOthers
  for (const inner of ['items', 'additionalProperties'])
    if (node[inner] !== undefined) out[inner] = bounded(node[inner] as Schema)
  if (node['properties'] !== undefined)
    out['properties'] = Object.fromEntries(
      Object.entries(node['properties'] as Readonly<Record<string, Schema>>).map(([key, property]) => [
        key,
        bounded(property, key),
      ]),
    )
  return out
}

/** A field that is declared only to be refused: undeclared, it would be dropped silently for most clients. */
const refusedObjects = (description: string): Schema => ({
  description: `Refused: ${description}`,
  type: 'array',
  items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
})

const labelValue = '^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$'
const containerName = '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'

const ruleFor = (code: keyof typeof refusals, condition: string, more: Schema = {}): Schema => {
  const { field, message } = refusals[code]
  return rule(condition, message, { fieldPath: field.replace(/^spec\.template/, ''), ...more })
}

const absent = (code: keyof typeof refusals): Schema => {
  const path = refusals[code].field.replace(/^spec\.template\./, '')
  return ruleFor(
    code,
    path.startsWith('metadata.') ? `!has(self.metadata) || !has(self.${path})` : `!has(self.${path})`,
  )
}

const noneOfOurs = (code: 'LabelReserved' | 'AnnotationReserved', field: 'labels' | 'annotations'): Schema =>
  ruleFor(
    code,
    `!has(self.metadata) || !has(self.metadata.${field}) || self.metadata.${field}.all(key, !key.startsWith('${prefix}'))`,
  )

const metadata: Schema = {
  description: 'Labels and annotations of every pod of the set.',
  type: 'object',
  properties: {
    name: text('Accepted but ignored: pods are named <set>-<12 hex digits>.'),
    labels: {
      description:
        'Labels of every pod. The operator writes the label type and those under backup.example.com/, so these are refused here.',
      type: 'object',
      maxProperties: maxLabels,
      additionalProperties: {
        type: 'string',
        maxLength: 253,
        'x-kubernetes-validations': [
          rule(`self.matches('${labelValue}')`, refusals.LabelValueInvalid.message),
        ],
      },
    },
    annotations: {
      description:
        'Annotations of every pod. The operator writes those under backup.example.com/, so these are refused here.',
      type: 'object',
      maxProperties: 1024,
      additionalProperties: { type: 'string' },
    },
    // kubectl's own generators write `creationTimestamp: null` into templates.
    creationTimestamp: {
      ...text('Accepted but ignored.', { format: 'date-time' }),
      nullable: true,
    },
    generateName: text('Refused: pods are named <set>-<12 hex digits>.'),
    namespace: text('Refused: pods are created in the namespace of their set.'),
    finalizers: {
      description: 'Refused: lost pods would remain, and failovers would wait for them.',
      type: 'array',
      items: { type: 'string' },
    },
    ownerReferences: refusedObjects('the set owns its pods.'),
  },
}

function podSchema(): Schema {
  const pod = readPodSchema() as PodSchema
  const containers = (field: 'containers' | 'initContainers'): Schema => {
    const of = pod.properties[field] as Schema & { items: PodSchema }
    const { name, image, ports, volumeMounts, resources, securityContext } = of.items.properties as Readonly<
      Record<string, PodSchema>
    >
    const capabilities = securityContext?.properties['capabilities'] as PodSchema | undefined
    return {
      ...of,
      maxItems: maxContainers,
      items: {
        ...of.items,
        properties: {
          ...of.items.properties,
          name: { ...name, maxLength: 253 },
          ports: { ...ports, maxItems: maxPorts },
          volumeMounts: { ...volumeMounts, maxItems: maxMounts },
          resources: {
            ...resources,
            properties: {
              ...resources?.properties,
              limits: { ...resources?.properties['limits'], maxProperties: maxResources },
            },
          },
          securityContext: {
            ...securityContext,
            properties: {
              ...securityContext?.properties,
              capabilities: {
                ...capabilities,
                properties: {
                  ...capabilities?.properties,
                  add: {
                    ...capabilities?.properties['add'],
                    maxItems: maxCapabilities,
                    items: { type: 'string', maxLength: maxCapabilityName },
                  },
                },
              },
            },
          },
          image: { ...image, description: 'Image of the container. Required.' },
        },
        'x-kubernetes-validations': [
          ruleFor('ContainerNameReserved', `self.name != '${gateContainerName}'`, { fieldPath: '.name' }),
          ruleFor('ContainerNameInvalid', `self.name.matches('${containerName}')`, { fieldPath: '.name' }),
          ruleFor('ImageMissing', "has(self.image) && self.image != ''", {
            fieldPath: '.image',
            reason: 'FieldValueRequired',
          }),
        ],
      },
    }
  }
  const described = (field: string, description: string, more: Schema = {}): Schema => ({
    ...pod.properties[field],
    description,
    ...more,
  })
  return {
    ...pod,
    description:
      'Spec of every pod of the set. restartPolicy must be Always, or OnFailure where one primary has no backups; nodeName, ephemeralContainers and activeDeadlineSeconds are refused.',
    properties: {
      ...pod.properties,
      containers: containers('containers'),
      initContainers: containers('initContainers'),
      volumes: { ...pod.properties['volumes'], maxItems: maxVolumes },
      readinessGates: { ...pod.properties['readinessGates'], maxItems: maxGates },
      nodeName: described(
        'nodeName',
        'Refused: the scheduler places the pods; use nodeSelector or affinity.',
      ),
      activeDeadlineSeconds: described(
        'activeDeadlineSeconds',
        'Refused: it would terminate primaries and backups after that time.',
      ),
      ephemeralContainers: refusedObjects('they can only be added to a running pod, by kubectl debug.'),
      restartPolicy: described(
        'restartPolicy',
        'Always, which is also the default, or OnFailure for one primary without backups, with checkpoint and one container without livenessProbe: once that has ended with success, nothing continues. Never is refused.',
      ),
      schedulerName: described(
        'schedulerName',
        'Use spec.schedulerName instead; both may be set if they are equal.',
      ),
      terminationGracePeriodSeconds: described(
        'terminationGracePeriodSeconds',
        'Seconds between SIGTERM and SIGKILL when a pod is deleted. The operator never shortens it. Default 30.',
        { minimum: 0 },
      ),
    },
  }
}

export const templateSchema = (): SchemaOf<PodTemplate> => ({
  description:
    'The pod template of all three kinds. A cold backup gets one more init container, the gate, which holds it until it is woken. A change rolls the set, see updateStrategy.',
  type: 'object',
  required: ['spec'],
  properties: { metadata: bounded(metadata), spec: bounded(podSchema()) },
  'x-kubernetes-validations': [
    ruleFor(
      'LabelTypeReserved',
      `!has(self.metadata) || !has(self.metadata.labels) || !('${labels.type}' in self.metadata.labels)`,
    ),
    noneOfOurs('LabelReserved', 'labels'),
    noneOfOurs('AnnotationReserved', 'annotations'),
    absent('GenerateNameRefused'),
    absent('NamespaceRefused'),
    absent('FinalizersRefused'),
    absent('OwnerReferencesRefused'),
    ruleFor('RestartPolicyNotAlways', "!has(self.spec.restartPolicy) || self.spec.restartPolicy != 'Never'"),
    ruleFor('ContainersMissing', 'size(self.spec.containers) > 0', { reason: 'FieldValueRequired' }),
    ruleFor(
      'ReadinessGateReserved',
      `!has(self.spec.readinessGates) || self.spec.readinessGates.all(gate, !gate.conditionType.startsWith('${prefix}'))`,
    ),
    absent('NodeNameRefused'),
    absent('EphemeralContainersRefused'),
    absent('ActiveDeadlineRefused'),
    ruleFor('OperatingSystemUnsupported', "!has(self.spec.os) || self.spec.os.name == 'linux'"),
  ],
})
