/** The fields of each kind of object that a support bundle has. */

import { annotations, labels } from '../../api/labels.ts'
import { retireRequested } from '../../api/node-report.ts'
import { stageLabel } from '../../api/pod-contract.ts'
import type { SchemaNode } from '../doctor/kinds.ts'
import type { Shape } from './redact.ts'
import { clusterDomainLabels } from './topology.ts'

const all = (names: readonly string[]): Readonly<Record<string, true>> =>
  Object.fromEntries(names.map(name => [name, true]))

/** Labels and annotations are data of users, except these. */
const knownLabels = all([
  ...Object.values(labels),
  stageLabel,
  ...clusterDomainLabels,
  ...['name', 'component', 'version', 'part-of', 'managed-by'].map(each => `app.kubernetes.io/${each}`),
])
const knownAnnotations = all([
  ...[annotations.epoch, annotations.openedGate, annotations.checkpointRequested],
  ...[annotations.handoverRequested, annotations.stayRequested, annotations.drainedNode, annotations.drill],
  retireRequested,
])
const metadata: Shape = {
  ...{ name: true, namespace: true, uid: true, generation: true, resourceVersion: true },
  ...{ creationTimestamp: true, deletionTimestamp: true, finalizers: [true] },
  ...{ labels: knownLabels, annotations: knownAnnotations },
  ownerReferences: [{ apiVersion: true, kind: true, name: true, uid: true, controller: true }],
}
/** Conditions of others have messages that quote containers. */
const foreignConditions: Shape = [{ type: true, status: true, reason: true, lastTransitionTime: true }]

/** Returns the shape of everything that a schema names. Fields that it leaves open are left out. */
export function shapeOf({ properties, items }: SchemaNode): Shape {
  if (items !== undefined) return [shapeOf(items)]
  if (properties === undefined) return true
  return Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, shapeOf(inner)]))
}

const ofOwner: Shape = {
  ...{ replicas: true, hotBackups: true, coldBackups: true, wakeupTimeout: true, gatePosition: true },
  ...{ paused: true, suspend: true, antiAffinity: true, schedulerName: true, clonePod: true, mode: true },
  ...{ cloneFrom: { pod: true }, hotBackup: { mode: true } },
  updateStrategy: { type: true, allowStateLoss: true },
  failover: {
    ...{ unreadySeconds: true, crashLoop: true, nodeTimeout: true, fencing: true, grant: true },
    liveness: { periodMilliseconds: true, failureThreshold: true },
  },
  checkpoint: {
    ...{ source: true, interval: true, maxFreezePercent: true, copies: true, holders: true, keep: true },
    ...{ giveUpAfterSeconds: true, retain: true, disk: true, drain: true, containers: [true] },
    // Neither path nor headers: they may have a password.
    http: { port: true, maxSize: true, timeoutSeconds: true, restoreSeconds: true },
    volumes: { maxSize: true },
  },
  service: {
    name: true,
    perSlot: true,
    ports: [{ name: true, port: true, targetPort: true, protocol: true }],
  },
}

export const owner = (status: SchemaNode | undefined): Shape => ({
  ...{ metadata, spec: ofOwner },
  ...(status && { status: shapeOf(status) }),
})

export const migration = (status: SchemaNode | undefined): Shape => ({
  metadata,
  spec: { source: { name: true, uid: true }, maxDowntime: true, addedNodeSelector: knownLabels },
  ...(status && { status: shapeOf(status) }),
})

export const report = (status: SchemaNode | undefined): Shape => ({
  metadata,
  ...(status && { status: shapeOf(status) }),
})

export const job = (status: SchemaNode | undefined): Shape => ({
  metadata,
  spec: { mode: true, paused: true, ttl: true, podRef: { namespace: true, name: true, uid: true } },
  ...(status && { status: shapeOf(status) }),
})

const state: Shape = {
  running: { startedAt: true },
  waiting: { reason: true },
  // Its message is a file that the container has written.
  terminated: { exitCode: true, signal: true, reason: true, startedAt: true, finishedAt: true },
}
const containers: Shape = [
  {
    name: true,
    image: true,
    restartPolicy: true,
    resources: { limits: all(['cpu', 'memory']), requests: all(['cpu', 'memory']) },
  },
]
const containerStatuses: Shape = [
  { ...all(['name', 'image', 'imageID', 'ready', 'started', 'restartCount']), state, lastState: state },
]
const podSpec: Shape = {
  ...{ nodeName: true, priorityClassName: true, schedulerName: true, restartPolicy: true },
  ...{ terminationGracePeriodSeconds: true, containers, initContainers: containers },
}

export const pod: Shape = {
  metadata,
  spec: podSpec,
  status: {
    ...{ phase: true, reason: true, qosClass: true, startTime: true, podIP: true, hostIP: true },
    ...{ conditions: foreignConditions, containerStatuses, initContainerStatuses: containerStatuses },
  },
}

export const workload: Shape = {
  metadata,
  spec: { replicas: true, template: { metadata: { labels: knownLabels }, spec: podSpec } },
  status: {
    ...all(['replicas', 'readyReplicas', 'availableReplicas', 'updatedReplicas', 'observedGeneration']),
    ...all(['currentNumberScheduled', 'desiredNumberScheduled', 'numberReady', 'updatedNumberScheduled']),
    conditions: foreignConditions,
  },
}

export const node: Shape = {
  metadata,
  spec: { unschedulable: true, taints: [{ key: true, effect: true }] },
  status: {
    conditions: foreignConditions,
    ...{ capacity: all(['cpu', 'memory', 'pods']), allocatable: all(['cpu', 'memory', 'pods']) },
    nodeInfo: all([
      ...['architecture', 'operatingSystem', 'osImage', 'kernelVersion', 'containerRuntimeVersion'],
      'kubeletVersion',
    ]),
  },
}

/** A Lease has half of a key in its annotations, so the bundle has none of these. */
export const lease: Shape = {
  metadata: { name: true, namespace: true, uid: true, resourceVersion: true, creationTimestamp: true },
  spec: { holderIdentity: true, renewTime: true, leaseDurationSeconds: true, leaseTransitions: true },
}

export const definition: Shape = {
  metadata: { name: true, creationTimestamp: true, generation: true },
  spec: { group: true, scope: true, versions: [{ name: true, served: true, storage: true }] },
  status: { conditions: foreignConditions, storedVersions: [true] },
}

const target: Shape = { kind: true, namespace: true, name: true, uid: true }
/** Without its note: the kubelet quotes the output of probes there. */
export const event = {
  metadata: { name: true, namespace: true, creationTimestamp: true },
  ...{ type: true, reason: true, action: true, eventTime: true, reportingController: true },
  ...{ regarding: target, related: target, series: { count: true, lastObservedTime: true } },
} as const satisfies Shape
export const ownEvent: Shape = { ...event, note: true }

/** Fields of a line of a log. */
export const logLine: Shape = {
  ...all([
    'level',
    'time',
    'msg',
    'controller',
    'namespace',
    'name',
    'set',
    'slot',
    'pod',
    'podUid',
    'uid',
    'node',
  ]),
  ...all([
    'generation',
    'epoch',
    'reconcileID',
    'reason',
    'code',
    'peer',
    'from',
    'to',
    'kind',
    'container',
    'problem',
  ]),
  ...all([
    'version',
    'bytes',
    'seconds',
    'ms',
    'holders',
    'result',
    'check',
    'address',
    'trace_id',
    'span_id',
  ]),
  err: {
    type: true,
    code: true,
    message: true,
    stack: true,
    details: { name: true, kind: true, group: true },
  },
}
