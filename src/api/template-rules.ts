import type { GatePosition } from './backuppodset.ts'
import type { refusals } from './errors.ts'
import { gateContainerName, gatePort } from './gate.ts'
import { labels, prefix } from './labels.ts'
import { holdVolume } from './stage.ts'

/** What the rules look at: the template, of whatever shape, and the fields that it has to agree with. */
export interface RuledSpec {
  readonly template: unknown
  readonly coldBackups: number
  readonly gatePosition: GatePosition
  readonly schedulerName: string
  /** The primaries' memory is kept. */
  readonly keepsMemory: boolean
  /** `spec.checkpoint` and `spec.hotBackup`, of whatever shape. */
  readonly checkpoint?: unknown
  readonly hotBackup?: unknown
}

type Code = keyof typeof refusals
type Anything = Readonly<Record<string, unknown>>

const containerName = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const labelValue = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/

/** The first rule that the template breaks. The same rules stand in the CRD as CEL, see crds/schema/template.ts. */
export function brokenRule({
  template,
  coldBackups,
  gatePosition,
  schedulerName,
  keepsMemory,
  checkpoint,
  hotBackup,
}: RuledSpec): Code | undefined {
  const { metadata: givenMetadata, spec } = objectOr<Anything>(template, {})
  const pod = objectOr(spec, undefined)
  if (pod === undefined) return 'TemplateMissing'
  const containers = objectsIn(pod['containers'])
  const initContainers = objectsIn(pod['initContainers'])
  const all = [...containers, ...initContainers]
  const metadata = objectOr<Anything>(givenMetadata, {})
  const templateLabels = Object.entries(objectOr(metadata['labels'], {}))
  const rules: readonly (readonly [Code, boolean])[] = [
    ['ContainersMissing', containers.length === 0],
    ['ContainerNameReserved', all.some(it => it['name'] === gateContainerName)],
    ['ContainerNameInvalid', all.some(it => !isText(it['name'], containerName))],
    ['ImageMissing', all.some(it => (it['image'] ?? '') === '')],
    ['RestartPolicyNotAlways', (pod['restartPolicy'] ?? 'Always') !== 'Always'],
    ['LabelTypeReserved', templateLabels.some(([key]) => key === labels.type)],
    ['LabelReserved', templateLabels.some(([key]) => key.startsWith(prefix))],
    ['LabelValueInvalid', templateLabels.some(([, value]) => !isText(value, labelValue))],
    [
      'AnnotationReserved',
      Object.keys(objectOr(metadata['annotations'], {})).some(key => key.startsWith(prefix)),
    ],
    ['GenerateNameRefused', isSet(metadata['generateName'])],
    ['NamespaceRefused', isSet(metadata['namespace'])],
    ['FinalizersRefused', isSet(metadata['finalizers'])],
    ['OwnerReferencesRefused', isSet(metadata['ownerReferences'])],
    ['NodeNameRefused', isSet(pod['nodeName'])],
    ['EphemeralContainersRefused', isSet(pod['ephemeralContainers'])],
    ['ActiveDeadlineRefused', isSet(pod['activeDeadlineSeconds'])],
    ['OperatingSystemUnsupported', isSet(pod['os']) && objectOr<Anything>(pod['os'], {})['name'] !== 'linux'],
    ['GateOnHostNetwork', pod['hostNetwork'] === true && coldBackups > 0],
    [
      'GatePortTaken',
      gatePosition === 'Last' &&
        coldBackups > 0 &&
        initContainers.some(it => objectsIn(it['ports']).some(port => port['containerPort'] === gatePort)),
    ],
    [
      'CheckpointContainerUnknown',
      textsIn(objectOr<Anything>(checkpoint, {})['containers']).some(
        name => !containers.some(it => it['name'] === name),
      ),
    ],
    [
      'ModeWithoutCheckpoint',
      !isSet(checkpoint) && (objectOr<Anything>(hotBackup, {})['mode'] ?? 'Warm') !== 'Warm',
    ],
    ...(keepsMemory ? memoryRules(pod, containers, all) : []),
    ['SchedulersDiffer', isSet(pod['schedulerName']) && pod['schedulerName'] !== schedulerName],
  ]
  return rules.find(([, isBroken]) => isBroken)?.[0]
}

/** What cannot be saved, or not be rebuilt in another pod. */
const memoryRules = (
  pod: Anything,
  containers: readonly Anything[],
  all: readonly Anything[],
): readonly (readonly [Code, boolean])[] => [
  ['MemoryOnHost', pod['hostNetwork'] === true || pod['hostPID'] === true || pod['hostIPC'] === true],
  ['MemoryOfSharedProcesses', pod['shareProcessNamespace'] === true],
  ['MemoryOfUserNamespace', pod['hostUsers'] === false],
  ['MemoryOnTerminal', containers.some(it => it['tty'] === true)],
  [
    'MemoryOfDevices',
    containers.some(
      it =>
        objectsIn(it['volumeDevices']).length > 0 ||
        objectsIn(objectOr<Anything>(it['resources'], {})['claims']).length > 0,
    ),
  ],
  [
    'MemoryBesideClaim',
    objectsIn(pod['volumes']).some(it => isSet(it['persistentVolumeClaim']) || isSet(it['ephemeral'])),
  ],
  ['HoldNameReserved', [...all, ...objectsIn(pod['volumes'])].some(it => it['name'] === holdVolume)],
]

const isText = (value: unknown, form: RegExp): boolean => typeof value === 'string' && form.test(value)

/** Kubernetes takes null for absent. */
const isSet = (value: unknown): boolean => value !== undefined && value !== null

const objectOr = <Otherwise>(value: unknown, otherwise: Otherwise): Anything | Otherwise =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Anything) : otherwise

/** Names of the template's containers, whatever its shape. */
export const containerNames = (template: unknown): readonly string[] =>
  objectsIn(objectOr<Anything>(objectOr<Anything>(template, {})['spec'], {})['containers']).flatMap(
    ({ name }) => (typeof name === 'string' ? [name] : []),
  )

const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter(it => typeof it === 'string') : []

const objectsIn = (value: unknown): readonly Anything[] =>
  Array.isArray(value) ? value.filter(it => typeof it === 'object' && it !== null) : []
