/** The effect of a plan on a set that keeps memory, for tests of the rules. */
import type { SlotMemory } from '../../slot/decide/memory-view.ts'
import { makeSlot, stage } from '../../slot/testing/slots.ts'
import type { Action, Plan } from '../plan.ts'
import type { StoredRevision } from '../revisions/revision.ts'
import type { PodView, RetiredPod, Snapshot } from '../snapshot.ts'
import { makeMemorySnapshot, makePrimary, makeUnderstudy, staged, templatesOf } from './memory.ts'
import { actionsOf, makePod, viewIn } from './snapshots.ts'

/** How the simulated cluster reacts to promotions: which pods get on stage. */
export interface Answers {
  readonly comes: (pod: PodView) => boolean
}

/** The parts of a snapshot that actions change. */
interface Played {
  readonly pods: Map<string, PodView>
  readonly slots: Map<number, SlotMemory>
  retired: readonly RetiredPod[]
  revisions: readonly StoredRevision[]
}

/**
 * Returns the state after a plan: all writes are done, agents have reacted, understudies have staged all copies on
 * their nodes, and time has passed.
 */
export function played(s: Snapshot, plan: Plan, { comes }: Answers): Snapshot {
  if (s.memory === undefined) throw new Error('a set without memory')
  const after: Played = {
    pods: new Map(s.pods.map(pod => [pod.uid, pod])),
    slots: new Map(s.memory.slots),
    retired: s.retired ?? [],
    revisions: s.revisions?.stored ?? [],
  }
  for (const action of actionsOf(plan)) play(s, action, comes, after)
  return staged(
    makeMemorySnapshot(
      s.set,
      [...after.pods.values()],
      [...after.slots.values()],
      {
        monotonicNow: s.monotonicNow + 5_000,
        ...templatesOf(s),
        ...(s.moves && { moves: s.moves }),
        ...(s.revisions && { revisions: { ...s.revisions, stored: after.revisions } }),
        ...(after.retired.length > 0 && { retired: after.retired }),
      },
      [...s.memory.nodes.keys()],
    ),
  )
}

type Of<Type extends Action['type']> = Extract<Action, { readonly type: Type }>

function play(s: Snapshot, action: Action, comes: Answers['comes'], after: Played): void {
  const { pods, slots } = after
  switch (action.type) {
    case 'create':
      pods.set(`uid-${action.name}`, created(s, action))
      break
    case 'convert':
      pods.set(action.pod.uid, converted(s, action))
      break
    case 'promote': {
      const { pod, role, lease } = action
      const present = slots.get(role.slot)
      if (present) slots.set(role.slot, { ...present, lease, restarts: 0, replacedSince: undefined })
      pods.set(pod.uid, promoted(s, action, comes(viewIn(s, pod))))
      break
    }
    case 'retire':
      pods.delete(action.pod.uid)
      after.retired = [...after.retired, { ...viewIn(s, action.pod), succeededAt: s.monotonicNow }]
      break
    case 'delete':
      pods.delete(action.pod.uid)
      after.retired = after.retired.filter(({ uid }) => uid !== action.pod.uid)
      break
    case 'writeSlot':
      slots.set(action.lease.slot, written(s, action, slots.get(action.lease.slot)))
      break
    case 'writePolicy': {
      const slot = slots.get(action.slot)
      if (slot) slots.set(action.slot, { ...slot, lease: { ...slot.lease, policy: action.policy } })
      break
    }
    case 'deleteSlot':
      slots.delete(action.slot)
      break
    case 'giveUp':
      slots.set(action.lease.slot, { ...action.slot, lease: action.lease })
      break
    case 'saveRevision':
      after.revisions = [saved(action), ...after.revisions]
      break
    case 'deleteRevision':
      after.revisions = after.revisions.filter(({ name }) => name !== action.revision.name)
      break
    case 'endGrant':
    case 'stateSilence':
    case 'wake':
    case 'restore':
    case 'adopt':
    case 'release':
    case 'applyService':
    case 'applyEndpoints':
    case 'deleteService':
      break
    default:
      action satisfies never
  }
}

function saved({ revision, number }: Of<'saveRevision'>): Played['revisions'][number] {
  const name = `bps-${revision.templateHash}`
  return { ...revision, number, name, uid: name, resourceVersion: '1' }
}

function created(s: Snapshot, { name, kind, role, revision, successorOf, near }: Of<'create'>): PodView {
  const { templateHash = s.templateHash, restoreHash = s.restoreHash } =
    revision ?? s.revisions?.current ?? {}
  if (kind === 'primary') {
    const made = makePrimary(name, 0, {}, { restoreHash })
    return { ...made, slot: role?.slot, epoch: role?.epoch ?? 0, templateHash }
  }
  if (kind === 'coldbackup')
    return makePod(name, 'coldbackup', {
      node: `n-${name}`,
      templateHash,
      stage: stage({ understudy: true, restoreHash }),
    })
  const node = near?.nodes[0] ?? `n-${name}`
  const madeFor = successorOf?.migration
  const made = makeUnderstudy(
    name,
    { templateHash, node },
    {
      ...{ restoreHash, successorOf: successorOf?.slot },
      ...(madeFor !== undefined && { madeFor }),
      ...((successorOf?.notOn !== undefined || successorOf?.nodeSelector !== undefined) && {
        confined: true,
      }),
    },
  )
  return successorOf ? { ...made, ready: false, createdAt: s.now } : made
}

const converted = (s: Snapshot, { pod, to, role }: Of<'convert'>): PodView => ({
  ...viewIn(s, pod),
  kind: to,
  slot: role?.slot ?? pod.slot,
  epoch: role?.epoch ?? pod.epoch,
  ready: true,
  gate: 'open',
})

const promoted = (s: Snapshot, { pod, role }: Of<'promote'>, isThere: boolean): PodView => ({
  ...viewIn(s, pod),
  kind: isThere ? 'primary' : pod.kind === 'coldbackup' ? 'coldbackup' : 'hotbackup',
  gate: pod.gate === 'none' ? 'none' : 'open',
  slot: isThere ? role.slot : undefined,
  epoch: isThere ? role.epoch : 0,
  ready: true,
  unreadySince: undefined,
  stage: stage({
    understudy: true,
    serving: isThere,
    failed: isThere ? undefined : 'torn',
    restoreHash: pod.stage?.restoreHash,
  }),
})

function written(
  s: Snapshot,
  { lease, restarts, requestsHandover }: Of<'writeSlot'>,
  before: SlotMemory | undefined,
): SlotMemory {
  const { copies = [], unasked = [] } = before ?? {}
  const isSameLife = before?.lease.incarnation === lease.incarnation
  const asked = requestsHandover ? s.monotonicNow : before?.handoverRequestedAt
  const handoverRequestedAt = lease.handover === undefined ? undefined : asked
  return makeSlot(lease, isSameLife ? copies : [], {
    ...{ restarts, handoverRequestedAt },
    ...(isSameLife && { unasked }),
  })
}
