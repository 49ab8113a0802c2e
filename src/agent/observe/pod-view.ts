import { gateOf, isAtGate } from '../../api/gate.ts'
import { annotations, labels } from '../../api/labels.ts'
import { parseBytes } from '../../api/memory.ts'
import { podAddress } from '../../api/pod-address.ts'
import {
  heldEnd,
  heldEndAnnotation,
  isUnderstudy,
  podConditions,
  probeKinds,
  probesAnnotation,
  savedAnnotation,
  servingReasons,
  successorAnnotation,
  wakeAnnotation,
} from '../../api/pod-contract.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import { servingRecordOf } from '../../api/serving-record.ts'
import { groupOf, ownerOf, slotOfPod } from '../../api/slot-lease.ts'
import type { SlotPolicy } from '../../api/slot-policy.ts'
import { isSet, objectIn } from '../../api/unknown.ts'
import type { Pod } from '../../kube/resources.ts'
import type { App, GateView, PodView, Stamp } from './snapshot.ts'

/** The pod itself says which memory of it is kept. Only pods from before their set kept memory do not. */
export const isMarked = ({ metadata }: Pod): boolean => metadata.annotations?.[savedAnnotation] !== undefined

/**
 * Returns the pod as tasks see it; undefined if it belongs to no group or has ended.
 *
 * @param policy of the slot that it holds, for a pod that is not marked; undefined: all its containers are saved.
 */
export function viewOf(
  pod: Pod,
  policy: Pick<SlotPolicy, 'containers' | 'restoreHash'> | undefined,
): PodView | undefined {
  const { namespace = '', name, uid } = pod.metadata
  const group = groupOf(pod.metadata)
  const phase = pod.status?.phase
  if (group === undefined || phase === 'Succeeded' || phase === 'Failed') return undefined
  const saved = pod.metadata.annotations?.[savedAnnotation]?.split(',')
  const names = saved ?? policy?.containers
  const containers = (pod.spec?.containers ?? []).filter(one => names?.includes(one.name) ?? true)
  const restoreHash = pod.metadata.labels?.[labels.restoreHash] ?? policy?.restoreHash
  const owner = ownerOf(pod.metadata)
  const asked = pod.metadata.annotations?.[annotations.checkpointRequested]
  const wish = pod.metadata.annotations?.[annotations.handoverRequested]
  return {
    namespace,
    name,
    uid,
    resourceVersion: pod.metadata.resourceVersion,
    group,
    ...(owner !== undefined && { owner }),
    kind: kindLabelOf(pod) ?? '',
    slot: slotOfPod(pod.metadata),
    epoch: natural(pod.metadata.annotations?.[annotations.epoch]) ?? 0,
    ip: podAddress(pod.status?.podIP, 'node'),
    madeForSlot: pod.metadata.annotations?.[successorAnnotation] !== undefined,
    understudy: isUnderstudy(pod),
    ready: conditionOf(pod, 'Ready')?.status === 'True',
    terminating: pod.metadata.deletionTimestamp !== undefined,
    ...heldEndOf(pod, containers),
    serving: servingOf(pod),
    understudyState: conditionOf(pod, podConditions.understudy),
    containers: containers.map(container => {
      const status = pod.status?.containerStatuses?.find(one => one.name === container.name)
      const startedAt = Date.parse(status?.state?.running?.startedAt ?? '')
      const limit = container.resources?.limits?.['memory']
      return {
        name: container.name,
        containerId: status?.containerID || undefined,
        imageId: status?.imageID ?? '',
        running: status?.state?.running !== undefined,
        startedAt: Number.isNaN(startedAt) ? undefined : startedAt,
        ...(status !== undefined && { restarts: status.restartCount }),
        memoryLimit: limit === undefined ? undefined : parseBytes(String(limit)),
      }
    }),
    gate: waitingGate(pod),
    // The node's report repeats this text, which must not fill the report up.
    ...(asked !== undefined && /^[!-~]{1,64}$/.test(asked) ? { checkpointRequest: asked } : {}),
    ...(wish === undefined ? {} : { handoverRequest: wish }),
    ...(restoreHash === undefined ? {} : { restoreHash }),
    apps: appsOf(containers, pod.metadata.annotations?.[probesAnnotation]),
  }
}

/** An API server without this kind of hook has dropped it from the pod, and left the mark. */
function heldEndOf({ metadata, spec }: Pod, saved: readonly App[]): Pick<PodView, 'heldEnd'> {
  const { deletionTimestamp, deletionGracePeriodSeconds: grace, annotations: notes } = metadata
  const mark = natural(notes?.[heldEndAnnotation])
  const endsAt = Date.parse(deletionTimestamp ?? '')
  if (mark === undefined || mark > heldEnd.max || grace === undefined || Number.isNaN(endsAt)) return {}
  const least = Math.min(...saved.map(sleepOf))
  if (saved.length === 0 || least < mark) return {}
  // A hook ends with the grace period of the deletion, which may be shorter than that of the pod.
  const forMs = Math.min(least, heldEnd.max, grace) * 1000
  const isWhole = spec?.containers.every(each => sleepOf(each) >= mark) === true
  return { heldEnd: { forMs, until: endsAt - grace * 1000 + forMs, killedAt: endsAt, isWhole } }
}

const sleepOf = ({ lifecycle }: Pick<App, 'lifecycle'>): number => lifecycle?.preStop?.sleep?.seconds ?? 0

/**
 * Returns the containers with their probes. An understudy has its probes in the annotation: nothing answers before the
 * promotion.
 */
function appsOf(containers: readonly App[], probes: string | undefined): readonly App[] {
  if (probes === undefined) return containers
  let given: unknown
  try {
    given = JSON.parse(probes)
  } catch {
    // A person has edited it. Without probes the agent asks the app at its port.
    return containers
  }
  const byName = objectIn(given)
  return containers.map(container => {
    const own = objectIn(byName[container.name])
    const kinds = probeKinds.flatMap(kind => (isSet(own[kind]) ? [[kind, own[kind]]] : []))
    return { ...container, ...Object.fromEntries(kinds) }
  })
}

function waitingGate(pod: Pod): GateView | undefined {
  const gate = isAtGate(pod) ? gateOf(pod) : undefined
  if (gate?.containerId === undefined) return undefined
  return { containerId: gate.containerId, order: pod.metadata.annotations?.[wakeAnnotation] || undefined }
}

const natural = (text: string | undefined): number | undefined =>
  text !== undefined && /^(0|[1-9]\d{0,8})$/.test(text) ? Number(text) : undefined

function servingOf(pod: Pod): PodView['serving'] {
  const stamp = conditionOf(pod, podConditions.serving)
  if (stamp === undefined) return undefined
  const heirAnswers = stamp.status === 'True' && stamp.reason === servingReasons.died
  return {
    ...stamp,
    record: servingRecordOf(pod),
    ...(heirAnswers && { status: 'False', heirAnswers }),
  }
}

function conditionOf(pod: Pod, type: string): Stamp | undefined {
  const found = pod.status?.conditions?.find(condition => condition.type === type)
  if (found === undefined) return undefined
  return { status: found.status, reason: found.reason ?? '', message: found.message ?? '' }
}
