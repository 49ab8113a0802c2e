/** A pod's spec with the rules of a reservation about its node. Both sides have to be met. */
import type { Placement } from '../../api/reservation.ts'
import type { Pod } from '../../kube/resources.ts'

/** Thrown if the workload cannot adopt a pod of ours. */
export class NoReservation extends Error {
  override readonly name = 'NoReservation'
  /** Reason of the job or the Reservation that fails. */
  readonly reason: 'FailedCreateReservation' | 'InvalidReservation' | 'FailedEvict'

  constructor(reason: NoReservation['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

type Spec = NonNullable<Pod['spec']>
/** Requirements of a term, as the API and as a reservation have them. */
interface Requirement {
  readonly key: string
  readonly operator: string
  readonly values?: readonly string[]
}
interface Term {
  readonly matchExpressions?: readonly Requirement[]
  readonly matchFields?: readonly Requirement[]
}
type Terms = readonly Term[]

/** Alternatives of both sides: a node meets one of each. */
const most = 64

/** @throws NoReservation if both sides contradict each other. */
export function placed(spec: Spec, placement: Placement): Spec {
  const { nodeSelector: own = {}, affinity, tolerations = [] } = spec
  const { nodeSelector = {}, nodeName } = placement
  for (const [key, value] of Object.entries(nodeSelector))
    if (own[key] !== undefined && own[key] !== value)
      throw new NoReservation(
        'InvalidReservation',
        `nodeSelector ${key}: the template of the reservation says ${value}, and the workload ${own[key]}`,
      )
  const { nodeAffinity } = affinity ?? {}
  const required = placement.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  const pinned: readonly Term[] = nodeName === undefined ? [] : [{ matchFields: [named('In', nodeName)] }]
  const terms = [
    nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [],
    required?.nodeSelectorTerms ?? [],
    pinned,
  ].reduce<ReturnType<typeof both>>((all, more) => both(all, more), [])
  if (terms.length > most)
    throw new NoReservation('InvalidReservation', `its node affinity has more than ${most} alternatives`)
  const selector = { ...own, ...nodeSelector }
  return {
    ...spec,
    ...(Object.keys(selector).length > 0 && { nodeSelector: selector }),
    ...(terms.length > 0 && {
      affinity: {
        ...affinity,
        nodeAffinity: {
          ...nodeAffinity,
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms },
        },
      },
    }),
    ...(placement.tolerations && {
      tolerations: [...tolerations, ...placement.tolerations.map(each => ({ ...each }))],
    }),
  }
}

/** Adds to each term of one side each term of the other: terms are alternatives, and the requirements in one hold together. */
function both(left: Terms, right: Terms) {
  const base: Terms = left.length === 0 ? [{}] : left
  const added: Terms = right.length === 0 ? [{}] : right
  if (left.length === 0 && right.length === 0) return []
  return base.flatMap(a =>
    added.map(b => {
      const matchExpressions = copied([...(a.matchExpressions ?? []), ...(b.matchExpressions ?? [])])
      const matchFields = copied([...(a.matchFields ?? []), ...(b.matchFields ?? [])])
      return {
        ...(matchExpressions.length > 0 && { matchExpressions }),
        ...(matchFields.length > 0 && { matchFields }),
      }
    }),
  )
}

const copied = (requirements: readonly Requirement[] = []) =>
  requirements.map(({ key, operator, values }) => ({ key, operator, ...(values && { values: [...values] }) }))

const named = (operator: 'In' | 'NotIn', node: string) =>
  ({ key: 'metadata.name', operator, values: [node] }) as const

/** Adds that the node is another one. */
export function elsewhere(placement: Placement, node: string | undefined): Placement {
  if (node === undefined) return placement
  const { nodeAffinity } = placement.affinity ?? {}
  const terms = nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [{}]
  const nodeSelectorTerms = terms.map(term => ({
    ...term,
    matchFields: [...(term.matchFields ?? []), named('NotIn', node)],
  }))
  return {
    ...placement,
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  }
}
