import { isEqual } from '../../kube/equal.ts'
import type { Endpoint, ServicesView } from '../../slot/decide/endpoints-view.ts'
import { isGone } from '../../slot/decide/knowledge.ts'
import type { SlotMemory } from '../../slot/decide/memory-view.ts'
import type { Candidate } from '../../slot/decide/snapshot.ts'
import { isGated } from '../../slot/decide/snapshot.ts'
import { msUntilSourceSays } from '../../slot/decide/source-says.ts'
import { familyOf, sliceName, wantedServices } from '../../slot/endpoints/shape.ts'
import type { Action, Tier } from '../plan.ts'
import type { Snapshot } from '../snapshot.ts'
import { isReplaced } from './deaths.ts'
import { isGoing } from './vacancies.ts'

/**
 * Returns the changes to a set's Services and endpoints. A slot whose successor is on its way keeps its present
 * endpoint: removing that first would be a second change, and proxies sync once a second at most.
 */
export function services(s: Snapshot, present: ServicesView, tiers: readonly Tier[]): Action[] {
  const actions = tiers.flatMap(tier => tier.actions)
  const primaries = s.pods
    .filter(pod => pod.kind === 'primary')
    .sort((a, b) => b.epoch - a.epoch || Number(b.ready) - Number(a.ready) || (a.name < b.name ? -1 : 1))
  const isBusy = actions.some(action => 'role' in action && action.role !== undefined)
  const slots = new Set([
    ...primaries.flatMap(({ slot }) => (slot === undefined ? [] : [slot])),
    ...(s.memory?.slots.keys() ?? []),
    ...s.lost.keys(),
  ])
  const wanted = wantedServices(s.set, slots)
  const changes: Action[] = []
  for (const { name, slot, type, ports } of wanted) {
    const service = present.services.find(each => each.name === name)
    if (service?.type === type && isEqual(service.ports, ports)) continue
    const version = service?.resourceVersion
    changes.push({ type: 'applyService', service: name, serviceType: type, ports, slot, version })
  }
  // The address of a slot's Service outlives its primary, and a suspension: the Service is deleted only with the slot.
  const isWhole =
    !isBusy && !s.set.suspended && new Set(primaries.map(({ slot }) => slot)).size >= s.set.replicas
  const isWanted = (name: string) => wanted.some(each => each.name === name)
  const goes = (name: string) => !isWanted(name) && (isWhole || s.set.service?.perSlot !== true)
  for (const { name, resourceVersion } of present.services)
    if (goes(name)) changes.push({ type: 'deleteService', what: 'service', name, resourceVersion })
  for (const { name, service, resourceVersion } of present.slices)
    if (goes(service)) changes.push({ type: 'deleteService', what: 'slice', name, resourceVersion })

  const held = slotsInTransition(s, actions)
  const strangers = new Set(primaries.filter(pod => isStranger(s, pod)).map(({ uid }) => uid))
  const onStage = new Map<number, Endpoint>()
  for (const { slot, ready, uid, name, node } of primaries) {
    const ip = present.addresses.get(uid)
    if (slot === undefined || !ready || ip === undefined || onStage.has(slot) || held.has(slot)) continue
    if (strangers.has(uid)) continue
    onStage.set(slot, { slot, ip, pod: name, uid, node })
  }
  for (const { name, slot: only, ports } of wanted) {
    const slices = present.slices.filter(({ service }) => service === name)
    const endpoints = [
      ...slices.flatMap(slice =>
        slice.endpoints.filter(({ slot, uid }) => held.has(slot) && !strangers.has(uid)),
      ),
      ...onStage.values(),
    ].filter(({ slot }) => only === undefined || slot === only)
    const bySlice = Map.groupBy(endpoints, ({ slot, ip }) => sliceName(name, slot, familyOf(ip)))
    for (const slice of new Set([...slices.map(each => each.name), ...bySlice.keys()])) {
      const list = (bySlice.get(slice) ?? []).sort((a, b) => a.slot - b.slot)
      const known = slices.find(each => each.name === slice)
      const shape = ports.map(({ port: _, ...port }) => port)
      if (known && isEqual([known.endpoints, known.ports], [list, shape])) continue
      const family = known?.family ?? familyOf(list[0]?.ip ?? '')
      const version = known?.resourceVersion
      changes.push({ type: 'applyEndpoints', slice, service: name, family, ports, endpoints: list, version })
    }
  }
  return changes
}

/**
 * True if the kubelet has started another app in the primary, for example after a reboot, and the memory of the app before
 * is kept: clients must not meet the empty app before a successor resumes that memory. An agent that has declared the death
 * has shut that app off, and leads connections to the successor.
 */
function isStranger({ memory }: Snapshot, pod: Candidate): boolean {
  const slot = memory?.slots.get(pod.slot ?? -1)
  return isReplaced(slot, pod) && pod.stage?.died !== true && !isGone(slot)
}

/**
 * Slots that change hands with their memory: connections to the old address end at the heir meanwhile. A cold backup
 * takes seconds, in which another pod may get the address of a pod that is gone.
 */
function slotsInTransition(s: Snapshot, actions: readonly Action[]): ReadonlySet<number> {
  const held = new Set<number>()
  const hold = (slot: number, successor: Candidate) => {
    const hasPredecessor = s.pods.some(
      pod => pod.kind === 'primary' && pod.slot === slot && pod.uid !== successor.uid,
    )
    if (!isGated(successor) || hasPredecessor) held.add(slot)
  }
  for (const action of actions) {
    if (action.type === 'promote') hold(action.role.slot, action.pod)
    // A ready pod takes over within milliseconds. A pod that has to start first would leave clients with an address
    // that no pod has.
    if (action.type === 'convert' && action.state && action.pod.ready && action.role)
      held.add(action.role.slot)
  }
  for (const pod of s.pods)
    if (pod.slot !== undefined && (pod.stage?.promoting || (pod.waking && pod.stage?.understudy)))
      hold(pod.slot, pod)
  for (const [number, slot] of s.memory?.slots ?? [])
    if (isGoing(s, slot) || isCalledSoon(s, slot)) held.add(number)
  return held
}

/** The agent has shut a dead primary off, and the operator waits some milliseconds for what its node has saved last. */
const isCalledSoon = (s: Snapshot, slot: SlotMemory): boolean =>
  msUntilSourceSays(s, slot) > 0 &&
  s.pods.some(({ uid, stage }) => uid === slot.lease.holder.uid && stage?.died === true)
