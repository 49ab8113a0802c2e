/** The spans of agents: the death of a primary, the use of a grant, a takeover, a last save. Pure. */
import { attributesOf, cut, rootOf, type Span, spanIdOf, traceOfChange } from './span.ts'

/** A pod, as agents see it. */
export interface TracedPod {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly owner?: string
}

/** A slot whose hands change. */
export interface TracedSlot {
  readonly name: string
  readonly owner?: string
  /** That of the primary which has it. */
  readonly epoch: number
}

/** The trace of the change by which this slot got its epoch. Undefined: it is not known who owns the slot, as in Leases of earlier versions. */
function traceOf({ name, owner, epoch }: TracedSlot, pod: TracedPod): string | undefined {
  const known = owner ?? pod.owner
  return known === undefined ? undefined : traceOfChange({ owner: known, slot: name, epoch })
}

/** The trace of the change by which this slot gets its next primary. */
const traceAfter = (slot: TracedSlot, pod: TracedPod): string | undefined =>
  traceOf({ ...slot, epoch: slot.epoch + 1 }, pod)

const ofPod = (pod: TracedPod, node: string) => ({
  ...{ 'k8s.namespace.name': pod.namespace, 'k8s.pod.name': pod.name, 'k8s.node.name': node },
})

/** A death that the API server has. Times are wall clocks, ms. */
export interface ToldDeath {
  /** By the sentinel; undefined: it has seen none, as when the agent itself ended the app. */
  readonly diedAt: number | undefined
  readonly declaredAt: number
  readonly toldAt: number
  /** From the death to the closed redirect, if the sentinel has measured it. */
  readonly redirectMicroseconds?: number | undefined
  readonly isByItself: boolean
}

/** @param slot of the dead primary, with its epoch. */
export function deathSpans(
  node: string,
  pod: TracedPod,
  slot: TracedSlot,
  death: ToldDeath,
): readonly Span[] {
  const traceId = traceAfter(slot, pod)
  if (traceId === undefined) return []
  const from = death.diedAt ?? death.declaredAt
  const common = { traceId, parentId: rootOf(traceId) }
  const attributes = attributesOf(ofPod(pod, node))
  const name = death.isByItself ? 'detect and report the death' : 'end the app and report it'
  const detection: Span = {
    ...{ ...common, spanId: spanIdOf(traceId, 'death', pod.uid), name },
    ...{ from, to: death.toldAt },
    attributes: { ...attributes, 'understudy.by_itself': death.isByItself },
  }
  const { redirectMicroseconds: us } = death
  if (death.diedAt === undefined || us === undefined) return [detection]
  const redirect: Span = {
    ...{
      ...common,
      spanId: spanIdOf(traceId, 'redirect', pod.uid),
      name: 'redirect connections to the heir',
    },
    ...{ from, to: from + us / 1000, attributes },
  }
  return [detection, redirect]
}

/** @param slot of the dead primary, with its epoch. Times are wall clocks, ms. */
export function grantSpans(
  node: string,
  pod: TracedPod,
  slot: TracedSlot,
  use: {
    readonly number: number
    readonly answer: string
    readonly heir: string
    readonly from: number
    readonly to: number
  },
): readonly Span[] {
  const traceId = traceAfter(slot, pod)
  if (traceId === undefined) return []
  return [
    {
      ...{ traceId, parentId: rootOf(traceId), spanId: spanIdOf(traceId, 'grant', String(use.number)) },
      ...{ name: 'use the grant of the heir', from: use.from, to: use.to },
      attributes: attributesOf({
        ...ofPod(pod, node),
        ...{ 'understudy.grant': use.number, 'understudy.answer': use.answer, 'understudy.to': use.heir },
      }),
      ...(use.answer !== 'Accepted' && { failure: use.answer }),
    },
  ]
}

/** A step of a task, ms from its begin. */
export interface Step {
  readonly name: string
  readonly from: number
  readonly to: number
}

/** The work of each step of a promotion. */
const stepNames: Readonly<Record<string, string>> = {
  enter: 'find the processes of the pod',
  fetch: 'fetch newer memory',
  restore: 'restore the memory',
  confirm: 'confirm the Lease',
  thaw: 'thaw',
  answer: 'wait until the app answers',
  told: 'tell that it serves',
}

/** @param slot with the epoch that the pod has it in. `began`: wall clock, ms. */
export function takeoverSpans(
  node: string,
  pod: TracedPod,
  slot: TracedSlot,
  {
    began,
    steps,
    generation,
    failure,
  }: {
    readonly began: number
    readonly steps: readonly Step[]
    readonly generation?: number | undefined
    readonly failure?: string
  },
): readonly Span[] {
  const traceId = traceOf(slot, pod)
  if (traceId === undefined) return []
  // Each try is a span of its own.
  const what = ['takeover', pod.uid, String(Math.round(began))]
  const spanId = spanIdOf(traceId, ...what)
  return [
    {
      ...{ traceId, spanId, parentId: rootOf(traceId), name: 'take over' },
      ...{ from: began, to: began + (steps.at(-1)?.to ?? 0) },
      attributes: attributesOf({ ...ofPod(pod, node), 'understudy.generation': generation }),
      ...(failure !== undefined && { failure: cut(failure) }),
    },
    ...steps.map(
      ({ name, from, to }, index): Span => ({
        ...{ traceId, spanId: spanIdOf(traceId, ...what, String(index)), parentId: spanId },
        ...{ name: stepNames[name] ?? name, from: began + from, to: began + to },
        attributes: {},
      }),
    ),
  ]
}

/**
 * The last save of a primary that is stopped for its successor.
 *
 * @param slot of the primary, with its epoch. Times are wall clocks, ms.
 */
export function lastSaveSpans(
  node: string,
  pod: TracedPod,
  slot: TracedSlot,
  save: {
    readonly from: number
    readonly to: number
    readonly generation: number
    readonly bytes: number
    /** How long CRIU has kept the processes frozen for it. */
    readonly frozenSeconds: number
  },
): readonly Span[] {
  const traceId = traceAfter(slot, pod)
  if (traceId === undefined) return []
  return [
    {
      ...{ traceId, parentId: rootOf(traceId), name: 'stop and save the last changes' },
      ...{
        spanId: spanIdOf(traceId, 'save', pod.uid, String(save.generation)),
        from: save.from,
        to: save.to,
      },
      attributes: attributesOf({
        ...ofPod(pod, node),
        ...{ 'understudy.generation': save.generation, 'understudy.bytes': save.bytes },
        'understudy.frozen_seconds': save.frozenSeconds,
      }),
    },
  ]
}
