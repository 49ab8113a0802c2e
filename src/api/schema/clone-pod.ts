import {
  type ClonePodSpec,
  type ClonePodStatus,
  clonePodDefaults,
  clonePodLimits,
  clonePodPhases,
} from '../clone-pod.ts'
import {
  choice,
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

const spec = (): SchemaOf<ClonePodSpec> =>
  object<ClonePodSpec>(
    {
      source: object<ClonePodSpec['source']>(
        {
          name: text(
            'Name of the pod, in the namespace of the ClonePod: the pod of a MigratingPod, or a primary of a BackupPodSet with checkpoint. It runs on.',
            objectName,
          ),
          uid: text(
            'Uid of the pod: another pod of that name is not copied. Absent: the pod that has the name when the operator begins.',
            { minLength: 1, maxLength: 64 },
          ),
        },
        { name: true },
        { description: 'The pod to copy.' },
      ),
      target: object<NonNullable<ClonePodSpec['target']>>(
        {
          name: text('Name of the MigratingPod to make. Its first pod is NAME-0.', {
            minLength: clonePodLimits.name.min,
            maxLength: clonePodLimits.name.max,
            pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
          }),
        },
        { name: true },
        { description: 'The copy to make. Absent: a MigratingPod with the name of the ClonePod.' },
      ),
      timeoutSeconds: integer(
        'The ClonePod fails if the copy does not serve within this time, counted from the creation of the ClonePod. Default 900.',
        clonePodLimits.timeout,
        clonePodDefaults.timeoutSeconds,
      ),
      ttlSecondsAfterFinished: integer(
        'The ClonePod is deleted this long after its end; the copy stays. Default 3600.',
        clonePodLimits.ttl,
        clonePodDefaults.ttlSecondsAfterFinished,
      ),
    },
    { source: true },
    {
      description: 'What is copied.',
      'x-kubernetes-validations': [
        rule('self == oldSelf', 'a ClonePod cannot be changed: delete it and create another one'),
      ],
    },
  )

const status = (): SchemaOf<ClonePodStatus> =>
  object<ClonePodStatus>(
    {
      phase: choice(
        'Pending: it waits, as its condition says. Cloning: its MigratingPod is there, and gets the memory. Succeeded: the copy serves, and does not belong to the ClonePod any more. Failed: it has ended; a copy that has never served is deleted.',
        clonePodPhases,
      ),
      source: object<NonNullable<ClonePodStatus['source']>>(
        { uid: text('Uid of the pod.'), node: text('Node of the pod.') },
        { uid: true },
        { description: 'The pod that is copied, as the operator has found it.' },
      ),
      target: object<NonNullable<ClonePodStatus['target']>>(
        {
          name: text('Name of the MigratingPod.'),
          uid: text('Uid of the MigratingPod.'),
          pod: text('Name of its pod.'),
          node: text('Node of its pod.'),
        },
        { name: true, uid: true },
        { description: 'The copy, as soon as it is there.' },
      ),
      endedAt: time('Time of its end, RFC 3339.'),
      conditions: mapList(
        'Succeeded: True or False once the ClonePod has ended, Unknown before; its reason says what it waits for, or why it failed.',
        'type',
        condition,
        4,
      ),
    },
    {},
    { description: 'How far the copy is.' },
  )

/** openAPIV3Schema of v1alpha1. */
export const clonePodSchema = (): Schema => ({
  description:
    'ClonePod copies one pod with its memory, once: a MigratingPod begins with the memory of the source, which runs on. If it is deleted before its end, the copy is deleted, too.',
  type: 'object',
  required: ['spec'],
  properties: {
    apiVersion: text('API version of this kind: backup.example.com/v1alpha1.'),
    kind: text('Name of this kind: ClonePod.'),
    metadata: { type: 'object' },
    spec: spec(),
    status: status(),
  },
  'x-kubernetes-validations': [
    // The API server accepts no fieldPath into metadata; the message names the field.
    rule(
      `has(self.spec.target) || self.metadata.name.size() <= ${clonePodLimits.name.max}`,
      `choose a name of at most ${clonePodLimits.name.max} characters, or set spec.target.name: names of pods add to it`,
    ),
  ],
})
