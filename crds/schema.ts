/**
 * The schema of BackupPodSet. The records below are typed by the fields of src/api/backuppodset.ts, so that a field that
 * is in one and not in the other does not compile.
 */
import {
  type BackupPodSetSpec,
  type BackupPodSetStatus,
  type Condition,
  type LastFailover,
  type LastTransition,
  type SlotStatus,
  type StrategyKey,
  strategies,
} from '../src/api/backuppodset.ts'
import { podKinds } from '../src/api/labels.ts'
import { readPodTemplateSchema, type Schema } from './pod-template.ts'

type Properties<T> = { readonly [Key in keyof Required<T>]: Schema }

const gateName = 'understudy-gate'
const maxCount = 10_000
const maxListed = 200

const object = <T>(properties: Properties<T>, more: Schema = {}): Schema => ({
  type: 'object',
  ...more,
  properties,
})
const rule = (condition: string, message: string, more: Schema = {}): Schema => ({
  rule: condition,
  message,
  reason: 'FieldValueInvalid',
  ...more,
})
const integer = (description: string, minimum: number, maximum: number, more: Schema = {}): Schema => ({
  description,
  type: 'integer',
  format: 'int32',
  minimum,
  maximum,
  ...more,
})
const choice = (description: string, values: readonly string[], standard: string): Schema => ({
  description,
  type: 'string',
  enum: values,
  default: standard,
})
const text = (description: string, more: Schema = {}): Schema => ({ description, type: 'string', ...more })
const names = (of: string): Schema => ({
  description: `Names of the ${of}, in order; at most ${maxListed}, the counts go on.`,
  type: 'array',
  maxItems: maxListed,
  'x-kubernetes-list-type': 'atomic',
  items: { type: 'string' },
})
const count = (description: string): Schema => ({ description, type: 'integer', format: 'int32' })

/** How a pod is chosen. Creations have no pod to choose from: they are placed by the scheduler. */
const choosing = (transition: string): Schema =>
  choice(
    `How the pod is chosen ${transition}: random, oldest, newest, or spread (by what its node carries). Pods that are ready come first under every policy. Default random.`,
    strategies,
    'random',
  )
const placing = (what: string): Schema =>
  choice(
    `How ${what} are placed: random leaves it to the scheduler, spread asks for distance from pods of the same kind. The value is also on the pod as label backup.example.com/strategy, for schedulers that want to know. Default random.`,
    ['random', 'spread'],
    'random',
  )

const strategyProperties: Readonly<Record<StrategyKey, Schema>> = {
  init: placing('the pods of a set that is new'),
  unallocatedToColdbackup: placing('cold backups made later'),
  unallocatedToHotbackup: placing('hot backups made later'),
  unallocatedToReplicas: placing('primaries made later, when no backup is left'),
  coldbackupToHotbackup: choosing('that turns from cold into hot backup'),
  coldbackupToReplicas: choosing('that turns from cold backup into primary when no hot backup is left'),
  hotbackupToReplicas: choosing('that turns from hot backup into primary'),
  replicasToUnallocated: choosing('that is deleted when there are too many primaries'),
  hotbackupToUnallocated: choosing('that is deleted when there are too many hot backups'),
  coldbackupToUnallocated: choosing('that is deleted when there are too many cold backups'),
}

function templateSchema(): Schema {
  const pod = readPodTemplateSchema() as { properties: Record<string, Schema> }
  const containers = (of: string): Schema => {
    const list = pod.properties[of] as Schema & { items: { properties: Record<string, Schema> } }
    return {
      ...list,
      maxItems: 64,
      items: {
        ...list.items,
        properties: { ...list.items.properties, name: { ...list.items.properties['name'], maxLength: 63 } },
      },
    }
  }
  const stringMap = (description: string): Schema => ({
    description,
    type: 'object',
    maxProperties: 64,
    additionalProperties: { type: 'string' },
  })
  const forbidden = (field: string, why: string): Schema =>
    rule(`!has(self.spec.${field})`, `remove template.spec.${field}: ${why}`, { fieldPath: `.spec.${field}` })
  return {
    description:
      'The pod that all three kinds are made from. A cold backup gets one init container more, which holds it back until it is woken. A change rolls the set, see updateStrategy.',
    type: 'object',
    required: ['spec'],
    properties: {
      metadata: {
        description: 'Labels and annotations of every pod of the set.',
        type: 'object',
        properties: {
          name: text('Accepted and not used: pods are named <set>-<12 hex digits>.'),
          labels: stringMap(
            'Labels of every pod. The label type and those under backup.example.com/ are written by the operator and refused here.',
          ),
          annotations: stringMap(
            'Annotations of every pod. Those under backup.example.com/ are written by the operator and refused here.',
          ),
        },
      },
      spec: {
        ...pod,
        description:
          'What runs in every pod of the set. restartPolicy must be Always; nodeName, ephemeralContainers and activeDeadlineSeconds are refused.',
        properties: {
          ...pod.properties,
          containers: containers('containers'),
          initContainers: containers('initContainers'),
        },
      },
    },
    'x-kubernetes-validations': [
      rule(
        "!has(self.metadata) || !has(self.metadata.labels) || !('type' in self.metadata.labels)",
        'remove the label type from template.metadata.labels: the operator writes primary, hotbackup or coldbackup there',
        { fieldPath: '.metadata.labels' },
      ),
      ...(['labels', 'annotations'] as const).map(field =>
        rule(
          `!has(self.metadata) || !has(self.metadata.${field}) || self.metadata.${field}.all(key, !key.startsWith('backup.example.com/'))`,
          `remove what begins with backup.example.com/ from template.metadata.${field}: that prefix belongs to the operator`,
          { fieldPath: `.metadata.${field}` },
        ),
      ),
      rule(
        "!has(self.spec.restartPolicy) || self.spec.restartPolicy == 'Always'",
        'set template.spec.restartPolicy to Always or leave it out: backups have to stay up until they are needed',
        { fieldPath: '.spec.restartPolicy' },
      ),
      rule('size(self.spec.containers) > 0', 'name at least one container in template.spec.containers', {
        fieldPath: '.spec.containers',
        reason: 'FieldValueRequired',
      }),
      ...(['containers', 'initContainers'] as const).map(field =>
        rule(
          `!has(self.spec.${field}) || self.spec.${field}.all(container, container.name != '${gateName}')`,
          `rename the container ${gateName} in template.spec.${field}: the gate of cold backups has that name`,
          { fieldPath: `.spec.${field}` },
        ),
      ),
      forbidden('nodeName', 'the scheduler places the pods; use nodeSelector or affinity to limit the nodes'),
      forbidden('ephemeralContainers', 'they can only be added to a running pod, with kubectl debug'),
      forbidden('activeDeadlineSeconds', 'it would end primaries and backups after that time'),
      rule(
        "!has(self.spec.os) || self.spec.os.name == 'linux'",
        'set template.spec.os.name to linux or leave it out: there is no gate for other systems',
        { fieldPath: '.spec.os' },
      ),
    ],
  }
}

const specProperties: Properties<BackupPodSetSpec> = {
  replicas: integer(
    'Number of primaries: the pods that serve. Default 1. This is what kubectl scale and autoscalers set.',
    0,
    maxCount,
    { default: 1 },
  ),
  hotBackups: integer(
    'Number of hot backups: started, reserved and used, without traffic; one becomes primary by a change of its label. Default 0.',
    0,
    maxCount,
    { default: 0 },
  ),
  coldBackups: integer(
    'Number of cold backups: scheduled, so that their resources are reserved, but held at a gate before any container starts. They stay Pending by design. Default 0.',
    0,
    maxCount,
    { default: 0 },
  ),
  strategy: {
    description:
      'How the pod, or the place for a new one, is chosen for each transition. Default random for each.',
    type: 'object',
    default: {},
    properties: strategyProperties,
  },
  schedulerName: text('Name of the scheduler that places every created pod. Default default-scheduler.', {
    default: 'default-scheduler',
    minLength: 1,
    maxLength: 253,
  }),
  wakeupTimeout: integer(
    'Seconds for waking one cold backup, from its choice to the answer of its gate. A gate that does not answer by then costs its pod: it is deleted, and the next cold backup is taken or a new pod made. Default 5.',
    1,
    300,
    { default: 5 },
  ),
  gatePosition: choice(
    "Where the gate of a cold backup stands among the template's init containers. First: nothing of the pod has run before it is woken. Last: the init containers have done their work already, so that it starts faster. Default First.",
    ['First', 'Last'],
    'First',
  ),
  paused: {
    description:
      'While true, nothing is created, converted or deleted, also not after a failure; the status goes on. Default false.',
    type: 'boolean',
    default: false,
  },
  antiAffinity: choice(
    'How strictly backups are kept off the nodes of primaries. Preferred: where the scheduler can. Required: a pod that cannot be kept apart stays Pending. None: not at all. Default Preferred.',
    ['Preferred', 'Required', 'None'],
    'Preferred',
  ),
  updateStrategy: object<NonNullable<BackupPodSetSpec['updateStrategy']>>(
    {
      type: choice(
        'RollingUpdate: cold backups, then hot ones, then primaries by promotion, one ready pod at a time. OnDelete: pods keep their template until they are deleted or converted away. Default RollingUpdate.',
        ['RollingUpdate', 'OnDelete'],
        'RollingUpdate',
      ),
    },
    { description: 'What a change of the template does to pods that exist.', default: {} },
  ),
  failover: object<NonNullable<BackupPodSetSpec['failover']>>(
    {
      unreadySeconds: integer(
        'Seconds after which a primary that is not Ready counts as failed, if a ready hot backup can take its place. 0: never. Default 30.',
        0,
        86_400,
        { default: 30 },
      ),
      crashLoop: choice(
        'What happens to a primary whose container the kubelet holds in CrashLoopBackOff. Replace: it counts as failed at once, if a ready hot or a gated cold backup can take its place. Ignore: only unreadySeconds counts. Default Replace.',
        ['Replace', 'Ignore'],
        'Replace',
      ),
    },
    {
      description:
        'When a primary that still exists counts as failed. One that is deleted or has ended always does.',
      default: {},
    },
  ),
  template: templateSchema(),
}

const statusProperties: Properties<BackupPodSetStatus> = {
  observedGeneration: {
    description: 'The metadata.generation that this status speaks of.',
    type: 'integer',
    format: 'int64',
  },
  replicas: count('Primaries that exist and are not being deleted.'),
  hotbackups: count('Hot backups that exist and are not being deleted.'),
  coldbackups: count('Cold backups that exist and are not being deleted.'),
  readyReplicas: count('Primaries that are Ready.'),
  readyHotbackups: count('Hot backups that are Ready.'),
  gatedColdbackups: count('Cold backups whose gate waits for its wake message.'),
  updatedPods: count('Pods made from the current template.'),
  primaryPodNames: names('primaries'),
  hotbackupPodNames: names('hot backups'),
  coldbackupPodNames: names('cold backups'),
  summary: object<NonNullable<BackupPodSetStatus['summary']>>(
    {
      replicas: text('Primaries.'),
      hotbackups: text('Hot backups.'),
      coldbackups: text('Cold backups.'),
    },
    { description: 'Current and desired number of each kind as current/desired, as kubectl get prints it.' },
  ),
  selector: text('Label selector of the primaries of this set, for the scale subresource.'),
  slots: {
    description: `Who holds which slot. A slot is the place of one primary and keeps its number through failovers; gaps are normal. At most ${maxListed}.`,
    type: 'array',
    maxItems: maxListed,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['slot'],
    items: object<SlotStatus>(
      {
        slot: count('Number of the slot.'),
        pod: text('Name of its primary.'),
        node: text('Node of its primary.'),
        epoch: { description: 'Grows with each promotion of the slot.', type: 'integer', format: 'int64' },
        ready: { description: 'Whether its primary is Ready.', type: 'boolean' },
      },
      { required: ['slot', 'pod', 'epoch', 'ready'] },
    ),
  },
  lastTransition: object<LastTransition>(
    {
      pod: text('Name of the pod.'),
      from: text('The kind it was.', { enum: podKinds }),
      to: text('The kind it became.', { enum: podKinds }),
      at: text('When, RFC 3339.', { format: 'date-time' }),
    },
    { description: 'The last conversion of a pod.' },
  ),
  lastFailover: object<LastFailover>(
    {
      slot: count('Number of the slot that lost its primary.'),
      from: text('Name of the lost primary.'),
      to: text('Name of its successor.'),
      reason: text('PodDeleted, PodFinished, Unready or CrashLoop.'),
      seconds: {
        description:
          "Seconds from the operator's first sight of the loss to the accepted write that put the successor on stage.",
        type: 'number',
      },
      at: text('When, RFC 3339.', { format: 'date-time' }),
    },
    { description: 'The last time a backup or a new pod took over from a lost primary.' },
  ),
  conditions: {
    description:
      'Ready: all numbers are met and every pod does what its kind is for. Progressing: there is something left to do. Degraded: an action fails, or containers keep failing. Paused: spec.paused.',
    type: 'array',
    maxItems: 16,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
    items: object<Condition>(
      {
        type: text('Ready, Progressing, Degraded or Paused.', { maxLength: 316 }),
        status: text('True, False or Unknown.', { enum: ['True', 'False', 'Unknown'] }),
        reason: text('Why, in one word for programs.', { maxLength: 1024 }),
        message: text('Why, for people.', { maxLength: 32_768 }),
        lastTransitionTime: text('When status last changed, RFC 3339.', { format: 'date-time' }),
        observedGeneration: {
          description: 'The metadata.generation that this condition speaks of.',
          type: 'integer',
          format: 'int64',
          minimum: 0,
        },
      },
      { required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'] },
    ),
  },
}

/** openAPIV3Schema of v1alpha1. */
export function backupPodSetSchema(): Schema {
  return {
    description:
      'BackupPodSet keeps primaries, hot backups and cold backups of one pod template, and converts the cheapest backup left when a primary is lost.',
    type: 'object',
    required: ['spec'],
    properties: {
      apiVersion: text('Version of this kind: backup.example.com/v1alpha1.'),
      kind: text('BackupPodSet.'),
      metadata: { type: 'object' },
      spec: object(specProperties, {
        description: 'What is wished for.',
        required: ['template'],
        'x-kubernetes-validations': [
          rule(
            '!has(self.template.spec.hostNetwork) || !self.template.spec.hostNetwork || self.coldBackups == 0',
            'set coldBackups to 0 or remove template.spec.hostNetwork: on the network of the node every gate would want the same port 20000',
          ),
          rule(
            '!has(self.template.spec.schedulerName) || self.template.spec.schedulerName == self.schedulerName',
            'name the scheduler in spec.schedulerName and remove template.spec.schedulerName: they differ',
          ),
        ],
      }),
      status: object(statusProperties, { description: 'What is observed.' }),
    },
    'x-kubernetes-validations': [
      rule(
        'self.metadata.name.size() <= 50',
        'choose a name of at most 50 characters: pod names append 13 to it and may have 63',
      ),
    ],
  }
}
