import { limits } from '../backuppodset.ts'
import { refusals } from '../errors.ts'
import {
  type LastMove,
  type MigratingPodSpec,
  type MigratingPodStatus,
  migratingPodStates,
  movingCheckpointKeys,
  movingFailoverKeys,
} from '../migrating-pod.ts'
import {
  choice,
  count,
  mapList,
  object,
  objectName,
  picked,
  propertiesOf,
  rule,
  type Schema,
  type SchemaOf,
  seconds,
  text,
  time,
} from './build.ts'
import { checkpointRules, refusedTemplates, restartPolicyRule } from './memory-rules.ts'
import { servicePortsRule } from './service-rules.ts'
import { specSchema } from './spec.ts'
import { completion, condition } from './status.ts'

const spec = (): SchemaOf<MigratingPodSpec> => {
  const ofSet = propertiesOf(specSchema())
  return object<MigratingPodSpec>(
    {
      checkpoint: object<NonNullable<MigratingPodSpec['checkpoint']>>(
        picked(propertiesOf(ofSet.checkpoint), movingCheckpointKeys),
        {},
        {
          description:
            'How the memory of the pod is saved while it stays where it is: if its node is lost, the pod continues elsewhere with the last saved state. A move loses nothing, whatever the interval.',
          default: {},
        },
      ),
      failover: object<NonNullable<MigratingPodSpec['failover']>>(
        picked(propertiesOf(ofSet.failover), movingFailoverKeys),
        {},
        { description: 'How failures of the pod and of its node are noticed.', default: {} },
      ),
      service: object<NonNullable<MigratingPodSpec['service']>>(
        picked(propertiesOf(ofSet.service), ['name', 'ports']),
        { name: true, ports: true },
        {
          description:
            'A Service whose endpoints the operator itself writes, in one write when the pod moves. Your own Services with a selector also work, about a second slower.',
        },
      ),
      suspend: ofSet.suspend,
      clonePod: text(
        'Name of a pod of the same namespace with a copy of whose memory the first pod begins: the pod of a MigratingPod, or a primary of a BackupPodSet with checkpoint. It runs on.',
        objectName,
      ),
      template: ofSet.template,
    },
    { template: true },
    {
      description: 'The pod, and how its memory is kept.',
      'x-kubernetes-validations': [
        ...refusedTemplates(),
        ...checkpointRules(),
        servicePortsRule(),
        restartPolicyRule('true'),
      ],
    },
  )
}

const lastMove = object<LastMove>(
  {
    from: text('Name of the pod before.'),
    to: text('Name of the pod that continued.'),
    reason: text(
      'Migration, or why the pod before was lost: PodDeleted, PodFinished, Died (its app has ended), Ended (its app was ended by its agent, or by a restart of its node) or NodeLost.',
    ),
    seconds: seconds('For how long no pod ran, as the operator saw it. Absent: it was not measured.'),
    stateAge: seconds('Age of the restored memory. Absent after a Migration, which loses nothing.'),
    at: time('Time of the end of the move, RFC 3339.'),
  },
  { from: true, to: true, reason: true, at: true },
  { description: 'How the present pod came to its node.' },
)

const status = (): SchemaOf<MigratingPodStatus> =>
  object<MigratingPodStatus>(
    {
      observedGeneration: count('The metadata.generation that the status refers to.', { format: 'int64' }),
      state: choice(
        'Creating: no pod has run yet. Running. MigrationPending: the pod is to move or is being deleted, and no other pod is there yet. Migrating: another pod is there, and takes over. Suspending: the pod is to end, see the condition Suspended. Suspended: it has ended, and its memory is kept. Completed: with restartPolicy OnFailure, the app has ended with success. Invalid: the condition Ready says what to change.',
        migratingPodStates,
      ),
      activePod: text('Name of the pod that runs the app.'),
      node: text('Node of that pod.'),
      migration: text('Name of the Migration that moves the pod.'),
      generation: count('Number of the newest saved state that another node has; 0: none yet.', {
        format: 'int64',
      }),
      savedAt: time('Time of the memory in that state, RFC 3339. Updated at most once a minute.'),
      lastMove,
      failures: count(
        'How often the app has ended by itself, and was continued in another pod or started again. Absent: never.',
      ),
      lastFailure: text('Name of the last pod from which another one had to continue for this reason.'),
      restarts: count(
        'How often the app was started from an empty state in the pod that runs, because nothing of it was saved. Absent: never.',
      ),
      completion,
      conditions: mapList(
        'Ready: the pod serves. CheckpointReady: its memory is saved on other nodes. Suspended: only with spec.suspend, whether the pod has ended, and where its memory is. Degraded: something prevents progress. Cloned: only with spec.clonePod, whether it has begun with the memory of another pod. They repeat the conditions of the BackupPodSet of the same name, which has more of them.',
        'type',
        condition,
        16,
      ),
    },
    {},
    { description: 'Where the pod is.' },
  )

/** openAPIV3Schema of v1alpha1. */
export const migratingPodSchema = (): Schema => ({
  description:
    'MigratingPod keeps one pod, and moves it to another node with its memory when a Migration asks for it, when the pod is deleted or evicted, or when its node fails. Each move makes a pod with the next number: NAME-0, NAME-1 and so on.',
  type: 'object',
  required: ['spec'],
  properties: {
    apiVersion: text('API version of this kind: backup.example.com/v1alpha1.'),
    kind: text('Name of this kind: MigratingPod.'),
    metadata: { type: 'object' },
    spec: spec(),
    status: status(),
  },
  'x-kubernetes-validations': [
    // The API server accepts no fieldPath into metadata; the message names the field.
    rule(`self.metadata.name.size() <= ${limits.name}`, refusals.NameTooLong.message),
  ],
})
