import {
  connectionsRefusal,
  copyRefusal,
  type MigrationSpec,
  type MigrationStatus,
  migrationConnections,
  migrationCopies,
  migrationDefaults,
  migrationLimits,
  migrationPhases,
  migrationPriorities,
  migrationTechniques,
  migrationTransfers,
  transferRefusal,
} from '../migration.ts'
import {
  choice,
  count,
  durationPattern,
  integer,
  mapList,
  object,
  objectName,
  rule,
  type Schema,
  type SchemaOf,
  text,
  time,
} from './build.ts'
import { condition } from './status.ts'

const int64 = { format: 'int64' }

const source = object<MigrationSpec['source']>(
  {
    name: text('Name of the pod, in the namespace of the Migration: the primary of a slot.', objectName),
    uid: text(
      'Uid of the pod: another pod of that name is not moved. Absent: the pod that has the name when the operator first looks.',
      { minLength: 1, maxLength: 64 },
    ),
  },
  { name: true },
  { description: 'The pod that moves.' },
)

const spec = (): SchemaOf<MigrationSpec> =>
  object<MigrationSpec>(
    {
      source,
      addedNodeSelector: {
        description:
          'Labels that the new node must have, beside those that the pod itself selects: it can only narrow the choice. To name a node, use kubernetes.io/hostname.',
        type: 'object',
        maxProperties: migrationLimits.labels,
        'x-kubernetes-validations': [
          rule(
            "self.all(name, name.matches('^([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",
            'use names of labels, such as kubernetes.io/hostname',
          ),
        ],
        additionalProperties: { type: 'string', maxLength: 63 },
      },
      priority: choice(
        'Which Migrations come first while not all can run: SystemCritical (a node is drained), UserTriggered, SystemMaintenance. Default UserTriggered.',
        migrationPriorities,
        migrationDefaults.priority,
      ),
      maxDowntime: text(
        'How long the pod may be stopped, such as 300ms: it is not stopped while its last generation has taken longer to reach the new node, see technique. From 10ms to 10m. Absent: however long it takes.',
        { maxLength: 32, pattern: durationPattern },
      ),
      technique: choice(
        'What maxDowntime means. Live: the pod is never stopped for longer. LiveIfPossible: after some generations, or half a minute, it moves all the same, if a restart would take longer than the move, or with the priority SystemCritical. Absent: LiveIfPossible with the priority SystemCritical, else Live.',
        migrationTechniques,
      ),
      transfer: {
        ...choice(
          'How the memory gets to the new node. Direct: the agents send it from node to node. SharedVolume and ClaimedVolume are refused with the reason. Absent: Direct.',
          migrationTransfers,
        ),
        'x-kubernetes-validations': [rule("self == 'Direct'", transferRefusal)],
      },
      copy: {
        ...choice(
          'When the memory is copied. PreCopy: while the pod runs, again and again, and the pod is stopped for the last changes only. PostCopy and Hybrid are refused with the reason. Absent: PreCopy.',
          migrationCopies,
        ),
        'x-kubernetes-validations': [rule("self == 'PreCopy'", copyRefusal)],
      },
      connections: {
        ...choice(
          'What becomes of the connections of the pod. Close: they end, and clients connect again. Keep is refused with the reason. Absent: Close.',
          migrationConnections,
        ),
        'x-kubernetes-validations': [rule("self == 'Close'", connectionsRefusal)],
      },
      unschedulableTimeoutSeconds: integer(
        'The Migration fails if no node takes the new pod for this time. Default 300.',
        migrationLimits.timeout,
        migrationDefaults.unschedulableTimeoutSeconds,
      ),
      pendingTimeoutSeconds: integer(
        'The Migration fails if the pod could not be stopped for its move within this time, counted from Reserving. Default 900.',
        migrationLimits.timeout,
        migrationDefaults.pendingTimeoutSeconds,
      ),
      ttlSecondsAfterFinished: count(
        'The Migration is deleted this long after its end. Absent: when five later Migrations of the set have ended.',
        { minimum: migrationLimits.ttl.min, maximum: migrationLimits.ttl.max },
      ),
    },
    { source: true },
    {
      description: 'What moves where.',
      'x-kubernetes-validations': [
        rule('self == oldSelf', 'a Migration cannot be changed: delete it and create another one'),
      ],
    },
  )

const status = (): SchemaOf<MigrationStatus> =>
  object<MigrationStatus>(
    {
      phase: choice(
        'Pending: it waits for its turn or its source. Reserving: a pod is made and scheduled. Preparing: that pod gets the memory while the source runs. Stopping: the source is stopped, and its last changes are saved. Switching: the other pod has the slot and resumes. Succeeded, Failed: it has ended; after Failed the source runs on, unless the condition says that it was lost.',
        migrationPhases,
      ),
      phaseTimes: mapList(
        'When each phase began the first time.',
        'phase',
        object(
          { phase: choice('The phase.', migrationPhases), at: time('Its beginning, RFC 3339.') },
          { phase: true, at: true },
        ),
        migrationPhases.length,
      ),
      source: object(
        {
          uid: text('Uid of the pod that moves.'),
          node: text('Node of the pod.'),
          set: text('Name of its BackupPodSet.'),
          slot: count('Number of its slot.'),
        },
        { uid: true, node: true, set: true, slot: true },
        { description: 'The pod that moves, as the operator has found it.' },
      ),
      target: object<NonNullable<MigrationStatus['target']>>(
        { name: text('Name of the pod.'), uid: text('Uid of the pod.'), node: text('Node of the pod.') },
        { name: true, uid: true },
        { description: 'The pod that takes the slot.' },
      ),
      generation: count('The last generation that the source has saved.', int64),
      bytes: count('Size of that generation in bytes.', int64),
      downtimeMilliseconds: count(
        'For how long the pod was stopped, until its successor served, as the operator saw it. Absent: it was not measured, because another operator took over meanwhile.',
      ),
      predictedDowntimeMilliseconds: count(
        'How long the pod would be stopped, by the prediction from its last generation before the stop. Absent: not known.',
      ),
      predictedRestartMilliseconds: count(
        'How long a restart of the pod takes at least, by its own start. Absent: not known.',
      ),
      acceptsDowntime: {
        description: 'True: the pod is stopped although that will be longer than maxDowntime, see technique.',
        type: 'boolean',
      },
      conditions: mapList(
        'Succeeded: True or False once the Migration has ended, Unknown before; its reason says what it waits for, or why it failed.',
        'type',
        condition,
        4,
      ),
    },
    {},
    { description: 'How far the move is.' },
  )

/** openAPIV3Schema of v1alpha1. */
export const migrationSchema = (): Schema => ({
  description:
    'Migration moves one pod with its memory to another node, once. If it is deleted before the slot has changed hands, the move is called off and the pod stays.',
  type: 'object',
  required: ['spec'],
  properties: {
    apiVersion: text('API version of this kind: backup.example.com/v1alpha1.'),
    kind: text('Name of this kind: Migration.'),
    metadata: { type: 'object' },
    spec: spec(),
    status: status(),
  },
})
