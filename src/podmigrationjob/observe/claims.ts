/** The room that a pod takes on a node, and where it may run. */
import { thousandthsIn } from '../../kube/quantity.ts'
import type { Node, Pod } from '../../kube/resources.ts'
import type { Amounts, NodeRoom, PodFacts } from '../decide/world.ts'

type Spec = NonNullable<Pod['spec']>
type Texts = Readonly<Record<string, string>>

const amountsIn = (texts: Texts = {}): Amounts =>
  Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, thousandthsIn(text) ?? 0]))

function merged(a: Amounts, b: Amounts, by: (a: number, b: number) => number): Amounts {
  const names = new Set([...Object.keys(a), ...Object.keys(b)])
  return Object.fromEntries([...names].map(name => [name, by(a[name] ?? 0, b[name] ?? 0)]))
}

const sum = (a: Amounts, b: Amounts) => merged(a, b, (x, y) => x + y)
const most = (a: Amounts, b: Amounts) => merged(a, b, Math.max)

/**
 * As the scheduler counts it: containers and sidecars run together, and an init container runs beside the sidecars that have started before it.
 * Requests of the whole pod replace those of its containers.
 */
function requestsOf({ containers, initContainers = [], overhead, resources }: Spec): Amounts {
  let sidecars: Amounts = {}
  let peak: Amounts = {}
  for (const { restartPolicy, resources: own } of initContainers) {
    const requests = amountsIn(own?.requests)
    if (restartPolicy === 'Always') {
      sidecars = sum(sidecars, requests)
      peak = most(peak, sidecars)
    } else peak = most(peak, sum(sidecars, requests))
  }
  const running = containers.reduce((all, { resources: own }) => sum(all, amountsIn(own?.requests)), sidecars)
  const whole = amountsIn(resources?.requests)
  return sum({ ...most(running, peak), ...whole }, amountsIn(overhead))
}

/** Kubernetes adds these to nearly every pod. */
const usual = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']

type Affinity = NonNullable<Spec['affinity']>
type Term = NonNullable<
  NonNullable<Affinity['podAntiAffinity']>['requiredDuringSchedulingIgnoredDuringExecution']
>[number]

/** Its own namespace and the node, as most templates have it. */
const isPlain = ({ topologyKey, namespaces, namespaceSelector, matchLabelKeys, mismatchLabelKeys }: Term) =>
  topologyKey === 'kubernetes.io/hostname' &&
  [namespaces, namespaceSelector, matchLabelKeys, mismatchLabelKeys].every(each => each === undefined)

const distancesOf = ({ affinity }: Spec): readonly Term[] =>
  affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []

/** Stands for all that only the scheduler can judge. It is one object for a hundred thousand pods. */
const unjudged = [{ maxSkew: 1, topologyKey: '', whenUnsatisfiable: 'DoNotSchedule' }]

/** The scheduler knows rules for the pod that are none of requests, labels, names, taints, and pods on the same node. */
function isUnjudged(spec: Spec): boolean {
  const { affinity, topologySpreadConstraints = [], resourceClaims = [], volumes = [] } = spec
  return (
    (affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).length > 0 ||
    !distancesOf(spec).every(isPlain) ||
    topologySpreadConstraints.some(({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule') ||
    resourceClaims.length > 0 ||
    spec.hostNetwork === true ||
    [...spec.containers, ...(spec.initContainers ?? [])].some(({ ports = [] }) =>
      ports.some(({ hostPort }) => hostPort !== undefined && hostPort > 0),
    ) ||
    volumes.some(({ ephemeral, persistentVolumeClaim }) => (ephemeral ?? persistentVolumeClaim) !== undefined)
  )
}

/** Returns the part of the spec that says what room the pod needs, with all its containers as one. */
export function claimOf(spec: Spec): Spec {
  const { nodeSelector, affinity, tolerations = [], schedulingGates } = spec
  const { nodeAffinity } = affinity ?? {}
  const distances = distancesOf(spec).filter(isPlain)
  const requests = Object.fromEntries(
    Object.entries(requestsOf(spec)).map(([name, amount]) => [name, `${amount}m`]),
  )
  const own = tolerations.filter(({ key = '', effect }) => effect !== 'NoExecute' || !usual.includes(key))
  return {
    containers: Object.keys(requests).length === 0 ? [] : [{ name: '', resources: { requests } }],
    ...(nodeSelector && { nodeSelector }),
    ...((nodeAffinity ?? distances[0]) && {
      affinity: {
        ...(nodeAffinity && { nodeAffinity }),
        ...(distances.length > 0 && {
          podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: distances },
        }),
      },
    }),
    ...(isUnjudged(spec) && { topologySpreadConstraints: unjudged }),
    ...(own.length > 0 && { tolerations: own }),
    ...(schedulingGates && { schedulingGates }),
  }
}

/** Also of a spec that `claimOf` has returned. A pod takes one of the places that a node has for pods. */
export const claimedBy = (spec: Spec): Amounts => sum(requestsOf(spec), { pods: 1_000 })

type RoomFacts = Pick<PodFacts, 'requests' | 'apart' | 'isUnjudged'>
export type RoomOf = (pod: Pod) => RoomFacts

export const nothing = (): RoomFacts => ({ requests: {}, apart: [], isUnjudged: false })

/** Returns a function that counts each version of a pod once. */
export function createRoomOf(): RoomOf {
  const counted = new WeakMap<Pod, RoomFacts>()
  return pod => {
    const before = counted.get(pod)
    if (before !== undefined || pod.spec === undefined) return before ?? nothing()
    const facts: RoomFacts = {
      requests: claimedBy(pod.spec),
      // A term without a selector matches no pod.
      apart: distancesOf(pod.spec).flatMap(({ labelSelector }) => labelSelector ?? []),
      isUnjudged: isUnjudged(pod.spec),
    }
    counted.set(pod, facts)
    return facts
  }
}

export function nodeRoomOf({ metadata, spec, status }: Node): NodeRoom {
  const isReady =
    status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true
  return {
    ...{ name: metadata.name, labels: metadata.labels ?? {}, taints: spec?.taints ?? [] },
    allocatable: amountsIn(status?.allocatable),
    isSchedulable: isReady && spec?.unschedulable !== true,
  }
}

/** Drops what no rule reads. */
export const withoutBallast = ({ metadata, spec, status }: Node): Node => {
  const { name, uid, resourceVersion, labels } = metadata
  return {
    metadata: { name, uid, resourceVersion, ...(labels && { labels }) },
    spec: { taints: spec?.taints ?? [], ...(spec?.unschedulable && { unschedulable: true }) },
    status: {
      allocatable: status?.allocatable ?? {},
      conditions: (status?.conditions ?? [])
        .filter(({ type }) => type === 'Ready')
        .map(({ type, status: is }) => ({ type, status: is })),
    },
  }
}
