import type { GatePosition } from './backuppodset.ts'
import type { refusals } from './errors.ts'
import { gateContainerName, gatePort } from './gate.ts'
import { labels, prefix } from './labels.ts'
import { type MemoryRuled, memoryRules } from './memory-rules.ts'
import { serviceRules } from './service-rules.ts'
import { type Anything, isSet, isText, objectIn, objectOr, objectsIn } from './unknown.ts'

/** Input of the rules: the template and other fields of any shape, and fields that have been validated. */
export interface RuledSpec extends MemoryRuled {
  /** Name of the set. */
  readonly set: string
  readonly template: unknown
  readonly service: unknown
  readonly replicas: number
  readonly hotBackups: number
  readonly coldBackups: number
  readonly gatePosition: GatePosition
  readonly schedulerName: string
}

type Code = keyof typeof refusals

const containerName = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const labelValue = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/

/**
 * Returns the first rule that the template violates. The CRD has the same rules as CEL, see src/api/schema/template.ts.
 */
export function brokenRule(spec: RuledSpec): Code | undefined {
  const { coldBackups, gatePosition, schedulerName } = spec
  const template = objectIn(spec.template)
  const pod = objectOr(template['spec'], undefined)
  if (pod === undefined) return 'TemplateMissing'
  const containers = objectsIn(pod['containers'])
  const initContainers = objectsIn(pod['initContainers'])
  const all = [...containers, ...initContainers]
  const metadata = objectIn(template['metadata'])
  const templateLabels = Object.entries(objectIn(metadata['labels']))
  const rules: readonly (readonly [Code, boolean])[] = [
    ['ContainersMissing', containers.length === 0],
    ['ContainerNameReserved', all.some(it => it['name'] === gateContainerName)],
    ['ContainerNameInvalid', all.some(it => !isText(it['name'], containerName))],
    ['ImageMissing', all.some(it => (it['image'] ?? '') === '')],
    ['RestartPolicyNotAlways', !isPolicyPossible(pod['restartPolicy'] ?? 'Always', spec, containers)],
    ['LabelTypeReserved', templateLabels.some(([key]) => key === labels.type)],
    ['LabelReserved', templateLabels.some(([key]) => key.startsWith(prefix))],
    ['LabelValueInvalid', templateLabels.some(([, value]) => !isText(value, labelValue))],
    [
      'AnnotationReserved',
      Object.keys(objectIn(metadata['annotations'])).some(key => key.startsWith(prefix)),
    ],
    ['GenerateNameRefused', isSet(metadata['generateName'])],
    ['NamespaceRefused', isSet(metadata['namespace'])],
    ['FinalizersRefused', isSet(metadata['finalizers'])],
    ['OwnerReferencesRefused', isSet(metadata['ownerReferences'])],
    [
      'ReadinessGateReserved',
      objectsIn(pod['readinessGates']).some(it => isText(it['conditionType'], new RegExp(`^${prefix}`))),
    ],
    ['NodeNameRefused', isSet(pod['nodeName'])],
    ['EphemeralContainersRefused', isSet(pod['ephemeralContainers'])],
    ['ActiveDeadlineRefused', isSet(pod['activeDeadlineSeconds'])],
    ['OperatingSystemUnsupported', isSet(pod['os']) && objectIn(pod['os'])['name'] !== 'linux'],
    ['GateOnHostNetwork', pod['hostNetwork'] === true && coldBackups > 0],
    [
      'GatePortTaken',
      gatePosition === 'Last' &&
        coldBackups > 0 &&
        initContainers.some(it => objectsIn(it['ports']).some(port => port['containerPort'] === gatePort)),
    ],
    ...memoryRules(pod, spec),
    ...serviceRules(spec.set, spec.service),
    ['SchedulersDiffer', isSet(pod['schedulerName']) && pod['schedulerName'] !== schedulerName],
  ]
  return rules.find(([, isBroken]) => isBroken)?.[0]
}

/**
 * A pod that ends with success has no backups: they would never be needed. It has one container: the containers of a pod
 * are restored together, and a container that has ended has no memory left to restore. And it has no livenessProbe: a stopped app fails it, and the signal of the kubelet would
 * make it end, which could look like success.
 */
function isPolicyPossible(
  policy: unknown,
  { keepsMemory, replicas, hotBackups, coldBackups }: RuledSpec,
  containers: readonly Anything[],
): boolean {
  if (policy !== 'OnFailure') return policy === 'Always'
  const hasOne = containers.length === 1 && !isSet(containers[0]?.['livenessProbe'])
  return keepsMemory && hasOne && replicas === 1 && hotBackups === 0 && coldBackups === 0
}

/** Returns the names of the template's containers, whatever its shape. */
export const containerNames = (template: unknown): readonly string[] =>
  objectsIn(objectIn(objectIn(template)['spec'])['containers']).flatMap(({ name }) =>
    typeof name === 'string' ? [name] : [],
  )
