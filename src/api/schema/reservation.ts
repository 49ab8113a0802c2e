import {
  type NodeRequirement,
  type NodeTerm,
  type ObjectReference,
  type Placement,
  type PlacementTemplate,
  type ReservationSpec,
  type ReservationStatus,
  reservationLimits,
  reservationPhases,
  selectorOperators,
  type Toleration,
  taintEffects,
  tolerationOperators,
} from '../reservation.ts'
import {
  choice,
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
import { condition } from './status.ts'

const key = { minLength: 1, maxLength: 317 }
const { terms, requirements, values, tolerations, owners, nodeSelector } = reservationLimits

const requirement = object<NodeRequirement>(
  {
    key: text('Label, or field, of the node.', key),
    operator: choice('How the values are compared.', selectorOperators),
    values: list('Values for In, NotIn, Gt and Lt.', text('A value.', { maxLength: 253 }), values),
  },
  { key: true, operator: true },
)

const term = object<NodeTerm>(
  {
    matchExpressions: list('Requirements on the labels of the node.', requirement, requirements),
    matchFields: list('Requirements on the fields of the node: metadata.name.', requirement, requirements),
  },
  {},
)

const toleration = object<Toleration>(
  {
    key: text('Key of the taint. Absent: all keys.', { maxLength: 317 }),
    operator: choice('Exists, or Equal with a value.', tolerationOperators),
    value: text('Value of the taint.', { maxLength: 253 }),
    effect: choice('Effect of the taint. Absent: all effects.', taintEffects),
  },
  {},
)

type Affinity = NonNullable<Placement['affinity']>
type NodeAffinity = NonNullable<Affinity['nodeAffinity']>
type Required = NonNullable<NodeAffinity['requiredDuringSchedulingIgnoredDuringExecution']>

/** A record of labels; the builder has no type for maps. */
const labelsOf = (description: string): SchemaOf<Readonly<Record<string, string>>> => ({
  ...{ description, type: 'object', maxProperties: nodeSelector },
  additionalProperties: { type: 'string', maxLength: 63 },
})

/** Where a pod may run: the part of a pod's spec that a reservation can add. */
export const placementTemplate = (description: string): SchemaOf<PlacementTemplate> =>
  object<PlacementTemplate>(
    {
      spec: object<Placement>(
        {
          nodeName: text('The only node on which the pod may run. The scheduler still decides.', objectName),
          nodeSelector: labelsOf('Labels of the node, beside those of the workload.'),
          affinity: object<Affinity>(
            {
              nodeAffinity: object<NodeAffinity>(
                {
                  requiredDuringSchedulingIgnoredDuringExecution: object<Required>(
                    {
                      nodeSelectorTerms: list('Alternatives, each with its requirements.', term, terms),
                    },
                    { nodeSelectorTerms: true },
                    { description: 'Required of the node, beside the rules of the workload.' },
                  ),
                },
                {},
                { description: 'Rules about nodes, as those of a pod.' },
              ),
            },
            {},
            { description: 'Rules about the node of the pod.' },
          ),
          tolerations: list(
            'Taints that the pod tolerates, beside those of the workload.',
            toleration,
            tolerations,
          ),
        },
        {},
        { description: 'Where the pod may run. Everything else is as the workload has it.' },
      ),
    },
    {},
    { description },
  )

/** A reference to an object. */
export const reference = (description: string, kind: string): SchemaOf<ObjectReference> =>
  object<ObjectReference>(
    {
      apiVersion: text(`API version of the ${kind}.`, { maxLength: 64 }),
      kind: text(`Kind of the object: ${kind}.`, { maxLength: 64 }),
      namespace: text(`Namespace of the ${kind}.`, { maxLength: 63 }),
      name: text(`Name of the ${kind}.`, objectName),
      uid: text(`Uid of the ${kind}.`, { maxLength: 64 }),
    },
    { name: true },
    { description },
  )

type Owner = ReservationSpec['owners'][number]

const spec = (): SchemaOf<ReservationSpec> =>
  object<ReservationSpec>(
    {
      template: placementTemplate('Where the pod may run. Absent: where any pod of the workload may run.'),
      owners: list(
        'The workload that adopts the pod: one owner.',
        object<Owner>(
          {
            controller: object<Owner['controller']>(
              {
                apiVersion: text('API version of the ReplicaSet: apps/v1, if set.', { maxLength: 64 }),
                kind: choice('Kind of the controller: ReplicaSet, if set.', ['ReplicaSet']),
                namespace: text('Namespace of the ReplicaSet, and of the pod.', {
                  minLength: 1,
                  maxLength: 63,
                }),
                name: text('Name of the ReplicaSet. The pod is made of its template.', objectName),
                uid: text('Uid of the ReplicaSet: another one of that name gets no pod.', { maxLength: 64 }),
              },
              { namespace: true, name: true },
              { description: 'The ReplicaSet of a Deployment.' },
            ),
          },
          { controller: true },
        ),
        owners,
      ),
      ttl: text(
        'The reservation fails if no workload has adopted its pod after this time. 0s: never. Absent: 24h.',
        {
          ...{ maxLength: 32, pattern: durationPattern },
        },
      ),
      expires: time('The same as a point in time, RFC 3339. It is stronger than the ttl.'),
      allocateOnce: {
        ...flag('A reservation is for one pod: true, if set.'),
        'x-kubernetes-validations': [rule('self', 'a reservation is for one pod: leave allocateOnce out')],
      },
    },
    { owners: true },
    {
      description: 'For which workload room is held, and where.',
      'x-kubernetes-validations': [
        rule('size(self.owners) == 1', 'name one owner: the ReplicaSet that adopts the pod'),
        rule(
          'self.owners == oldSelf.owners && has(self.template) == has(oldSelf.template) && (!has(self.template) || self.template == oldSelf.template)',
          'owners and template cannot be changed: delete the reservation and create another one',
        ),
      ],
    },
  )

const status = (): SchemaOf<ReservationStatus> =>
  object<ReservationStatus>(
    {
      phase: choice(
        'Pending: its pod has no node yet. Available: the pod holds the room. Succeeded: the workload has the pod. Failed: the room is not held, or not any more.',
        reservationPhases,
      ),
      nodeName: text('Node of the pod.'),
      podRef: reference('The pod that holds the room.', 'Pod'),
      currentOwners: list(
        'The pod, as soon as its workload has it.',
        reference('A pod that uses the room.', 'Pod'),
        owners,
      ),
      conditions: mapList(
        'Scheduled: True when the pod has a node. Ready: True as long as a workload may adopt the pod, or has it.',
        'type',
        condition,
        reservationLimits.conditions,
      ),
    },
    {},
    { description: 'Whether the room is held.' },
  )

/** openAPIV3Schema of v1alpha1. */
export const reservationSchema = (group: string): Schema => ({
  description:
    'Reservation holds room for one more pod of a Deployment. A real pod holds it, until the Deployment adopts that pod.',
  type: 'object',
  required: ['spec'],
  properties: {
    apiVersion: text(`API version of this kind: ${group}/v1alpha1.`),
    kind: text('Name of this kind: Reservation.'),
    metadata: { type: 'object' },
    spec: spec(),
    status: status(),
  },
})
