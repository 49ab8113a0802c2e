import { conditionLimits } from '../../kube/conditions.ts'
import {
  type JobDeleteOptions,
  jobLimits,
  jobModes,
  jobPhases,
  type PodMigrationJobSpec,
  type PodMigrationJobStatus,
  type PreemptedPodReservation,
  type ReservationOptions,
  skipGates,
} from '../pod-migration-job.ts'
import { reservationPhases } from '../reservation.ts'
import {
  choice,
  count,
  durationPattern,
  flag,
  list,
  mapList,
  object,
  objectName,
  rule,
  type Schema,
  type SchemaOf,
  text,
  time,
} from './build.ts'
import { placementTemplate, reference } from './reservation.ts'
import { condition } from './status.ts'

const namespace = { minLength: 1, maxLength: 63 }
const uid = { minLength: 1, maxLength: 64 }

const unchanged = (name: string): Schema => ({
  'x-kubernetes-validations': [
    rule('self == oldSelf', `${name} cannot be changed: delete the job and create another one`),
  ],
})

const podRef = object<PodMigrationJobSpec['podRef']>(
  {
    apiVersion: text('API version of the pod: v1, if set.', { maxLength: 64 }),
    kind: text('Kind of the pod: Pod, if set.', { maxLength: 64 }),
    namespace: text('Namespace of the pod.', namespace),
    name: text('Name of the pod.', objectName),
    uid: text(
      'Uid of the pod: another pod of that name is left alone. Absent: the pod that has the name when the operator first looks.',
      uid,
    ),
  },
  { namespace: true, name: true },
  {
    description: 'The pod that is to be migrated.',
    ...unchanged('podRef'),
  },
)

const deleteOptions = object<JobDeleteOptions>(
  {
    apiVersion: text('API version of the options, if set.', { maxLength: 64 }),
    kind: text('Kind of the options, if set.', { maxLength: 64 }),
    gracePeriodSeconds: count("The pod's grace period. Absent: that of its spec.", {
      format: 'int64',
      minimum: jobLimits.gracePeriod.min,
      maximum: jobLimits.gracePeriod.max,
    }),
    preconditions: object<NonNullable<JobDeleteOptions['preconditions']>>(
      {
        uid: text('The pod is evicted only if it has this uid.', uid),
        resourceVersion: text('The pod is evicted only if it has this version.', uid),
      },
      {},
      { description: 'Conditions of the eviction. The operator always adds the uid of the pod.' },
    ),
  },
  {},
  {
    description:
      'Options of the eviction. They replace the defaultDeleteOptions of the configuration as a whole.',
  },
)

type JobTemplate = NonNullable<ReservationOptions['template']>

const reservationOptions = object<ReservationOptions>(
  {
    reservationRef: reference(
      'The Reservation that the job uses. Absent: the operator creates one, and writes it here.',
      'Reservation',
    ),
    template: object<JobTemplate>(
      {
        spec: object<NonNullable<JobTemplate['spec']>>(
          { template: placementTemplate('Where the replacement may run, beside the rules of its workload.') },
          {},
          { description: 'Spec of the Reservation: the operator fills the rest in.' },
        ),
      },
      {},
      { description: 'Of the Reservation that the operator creates.' },
    ),
    preemptionOptions: object<NonNullable<ReservationOptions['preemptionOptions']>>(
      {},
      {},
      {
        description:
          'Present: if no node has room for the replacement, pods of a lower priority give way to it. Each of them has a replacement of its own before it goes. Absent: the scheduler treats the replacement as any pod with its priority.',
      },
    ),
  },
  {},
  { description: 'How room is held for the replacement, with mode ReservationFirst.' },
)

const spec = (): SchemaOf<PodMigrationJobSpec> =>
  object<PodMigrationJobSpec>(
    {
      paused: flag('True: the job waits, and nothing is done for it.'),
      abort: flag(
        'True: the job ends as Aborted. If the pod is already being evicted, or has handed its memory over, the job continues.',
      ),
      ttl: text(
        'The job fails if it has not ended after this time, such as 5m0s, counted from the phase Running. From 1s to 24h. Absent: defaultJobTTL of the configuration.',
        {
          ...{ maxLength: 32, pattern: durationPattern },
          'x-kubernetes-validations': [
            rule(
              "duration(self) >= duration('1s') && duration(self) <= duration('24h')",
              'ttl is from 1s to 24h',
            ),
          ],
        },
      ),
      mode: {
        ...choice(
          'ReservationFirst: the pod goes when its replacement is ready on another node. EvictDirectly: the pod is evicted at once. Live: the primary of a BackupPodSet moves with its memory. Absent: defaultJobMode of the configuration.',
          jobModes,
        ),
        ...unchanged('mode'),
      },
      podRef,
      reservationOptions,
      deleteOptions,
      skipGates: list(
        'Rules that refuse pods and that this job skips. They need a skipReason.',
        choice('Name of a gate.', skipGates),
        skipGates.length,
        { 'x-kubernetes-list-type': 'set' },
      ),
      skipReason: text('Why the job skips gates.', {
        minLength: jobLimits.skipReason.min,
        maxLength: jobLimits.skipReason.max,
      }),
    },
    { podRef: true },
    {
      description: 'Which pod is migrated, and how.',
      'x-kubernetes-validations': [
        rule(
          'has(self.mode) == has(oldSelf.mode)',
          'mode cannot be changed: delete the job and create another one',
        ),
        // The operator adds the reference once.
        rule(
          '!has(oldSelf.reservationOptions) || !has(oldSelf.reservationOptions.reservationRef) || (has(self.reservationOptions) && has(self.reservationOptions.reservationRef) && self.reservationOptions.reservationRef == oldSelf.reservationOptions.reservationRef)',
          'reservationRef cannot be changed: delete the job and create another one',
        ),
        rule(
          "!has(self.mode) || self.mode == 'ReservationFirst' || !has(self.reservationOptions) || (!has(self.reservationOptions.preemptionOptions) && !has(self.reservationOptions.reservationRef))",
          'preemptionOptions and reservationRef are for the mode ReservationFirst: leave them out',
        ),
        rule(
          "!has(self.mode) || self.mode != 'Live' || !has(self.deleteOptions)",
          'deleteOptions have no effect in the mode Live: leave them out',
        ),
        rule(
          '!has(self.skipGates) || size(self.skipGates) == 0 || has(self.skipReason)',
          'say in skipReason why the job skips gates',
        ),
      ],
    },
  )

const status = (): SchemaOf<PodMigrationJobStatus> =>
  object<PodMigrationJobStatus>(
    {
      phase: choice(
        'Pending: the job waits for its turn. Running: it is admitted. Succeed, Failed, Aborted: it has ended.',
        jobPhases,
      ),
      status: text('Type of the condition that was written last; Complete at the end.'),
      reason: text('Why the job is in this state, in one word.', { maxLength: conditionLimits.reason }),
      message: text('Why the job is in this state.', { maxLength: conditionLimits.message }),
      nodeName: text('Node of the pod that replaces the other one.'),
      podRef: object<NonNullable<PodMigrationJobStatus['podRef']>>(
        {
          namespace: text('Namespace of the pod.'),
          name: text('Name of the pod.'),
          uid: text('Uid of the pod.'),
        },
        { namespace: true, name: true },
        { description: 'The pod that replaces the other one, where the operator knows it.' },
      ),
      source: object<NonNullable<PodMigrationJobStatus['source']>>(
        {
          uid: text('Uid of the pod.'),
          nodeName: text('Node of the pod.'),
          workload: text('Kind, namespace and name of its workload.'),
          deletionCost: text('Its pod-deletion-cost before the job lowers it. Absent: it has none.'),
        },
        { uid: true },
        { description: 'The pod that is migrated, as the operator has found it.' },
      ),
      migration: object<NonNullable<PodMigrationJobStatus['migration']>>(
        {
          name: text('Name of the Migration, in the namespace of the pod.'),
          uid: text('Uid of the Migration. Absent: it is not created yet.'),
        },
        { name: true },
        { description: 'The Migration of a job with mode Live.' },
      ),
      reservation: object<NonNullable<PodMigrationJobStatus['reservation']>>(
        {
          name: text('Name of the Reservation, and of the pod that holds its room.'),
          uid: text('Uid of the Reservation. Absent: it is not created yet.'),
        },
        { name: true },
        { description: 'The Reservation of a job with mode ReservationFirst.' },
      ),
      preemptionNodeName: text('Node on which pods give way to the replacement.'),
      preemptedPodsRef: list(
        'The pods that give way, or that the scheduler has removed for the replacement.',
        reference('A pod.', 'Pod'),
        jobLimits.preemptedPods,
      ),
      preemptedPodsReservation: list(
        'The Reservations of the pods that give way.',
        object<PreemptedPodReservation>(
          {
            namespace: text('Namespace of the pod that holds the room.'),
            name: text('Name of the Reservation, and of the pod that holds its room.'),
            nodeName: text('Node of the pod that holds the room.'),
            phase: choice('Phase of the Reservation.', reservationPhases),
            preemptedPodRef: reference('The pod that gives way.', 'Pod'),
            podsRef: list(
              'The pod that has replaced it.',
              reference('A pod.', 'Pod'),
              jobLimits.preemptedPods,
            ),
          },
          { namespace: true, name: true, preemptedPodRef: true },
        ),
        jobLimits.preemptedPods,
      ),
      mode: choice(
        'The mode under which the job was admitted: a later change of the default does not change it.',
        jobModes,
      ),
      startTime: time('When the job was admitted, RFC 3339.'),
      completionTime: time('When the job ended, RFC 3339.'),
      conditions: mapList(
        'Arbitrated: False while the job waits, with the budget or rule for which it waits. Eviction: True when the pod is gone. ReservationCreated, ReservationScheduled, BoundPodReady: the replacement exists, has a node, is ready. PodBoundReservation, ReservationBound: the workload has the replacement. PodScheduled: whether a pod that had no node has one. Preemption: False while other pods give way. Migrated: True when the pod has moved with its memory.',
        'type',
        condition,
        jobLimits.conditions,
      ),
    },
    {},
    { description: 'How far the job is.' },
  )

/** openAPIV3Schema of v1alpha1. */
export const podMigrationJobSchema = (group: string): Schema => ({
  description:
    'PodMigrationJob takes one pod away from its node safely, once. All waiting jobs are judged together, and only as many begin as the budgets allow.',
  type: 'object',
  required: ['spec'],
  properties: {
    apiVersion: text(`API version of this kind: ${group}/v1alpha1.`),
    kind: text('Name of this kind: PodMigrationJob.'),
    metadata: { type: 'object' },
    spec: spec(),
    status: status(),
  },
})
