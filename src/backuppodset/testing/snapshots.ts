/** Snapshots for tests of the rules: a set with a given spec and pods of given kinds. */
import { strategyKeys } from '../../api/backuppodset.ts'
import type { PodKind } from '../../api/labels.ts'
import type { ParsedSet } from '../../api/parse.ts'
import type { Candidate } from '../../slot/decide/snapshot.ts'
import { makeCandidate } from '../../slot/testing/slots.ts'
import type { Action, Plan } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'

export function makeSet(over: Partial<ParsedSet> = {}): ParsedSet {
  return {
    name: 'bps',
    namespace: 'default',
    uid: 'set-uid',
    generation: 1,
    replicas: 1,
    hotBackups: 1,
    coldBackups: 1,
    strategy: Object.fromEntries(strategyKeys.map(key => [key, 'random'])) as ParsedSet['strategy'],
    schedulerName: 'default-scheduler',
    wakeupTimeout: 5,
    gatePosition: 'First',
    paused: false,
    suspended: false,
    cloneFrom: undefined,
    antiAffinity: 'Preferred',
    updateStrategy: 'RollingUpdate',
    allowStateLoss: false,
    failover: {
      unreadySeconds: 30,
      crashLoop: 'Replace',
      nodeTimeoutMs: 3_000,
      fencing: 'Freeze',
      grant: 'None',
    },
    memory: undefined,
    pull: undefined,
    service: undefined,
    liveness: undefined,
    template: { spec: { containers: [{ name: 'app', image: 'app' }] } },
    ...over,
  }
}

/** A healthy pod of its kind. */
export function makePod(name: string, kind: PodKind, over: Partial<PodView> = {}): PodView {
  return { ...makeCandidate(name, kind), crashLooping: false, templateHash: 'now', ...over }
}

/** P primaries in slots from 0, H hot and C cold backups, all healthy. */
export const makePods = (p: number, h: number, c: number): PodView[] => [
  ...Array.from({ length: p }, (_, i) => makePod(`p${i}`, 'primary', { slot: i, epoch: 1 })),
  ...Array.from({ length: h }, (_, i) => makePod(`h${i}`, 'hotbackup')),
  ...Array.from({ length: c }, (_, i) => makePod(`c${i}`, 'coldbackup')),
]

export function makeSnapshot(
  set: Partial<ParsedSet>,
  pods: readonly PodView[],
  over: Partial<Snapshot> = {},
): Snapshot {
  const epochs = new Map<number, number>()
  for (const { slot, epoch } of pods)
    if (slot !== undefined) epochs.set(slot, Math.max(epochs.get(slot) ?? 0, epoch))
  return Object.freeze({
    set: makeSet(set),
    templateHash: 'now',
    pods,
    orphans: [],
    strays: [],
    finished: [],
    epochs,
    lost: new Map(),
    isNew: false,
    now: 1_000_000,
    monotonicNow: 1_000,
    ...over,
  })
}

/** Returns the pod of an action with the fields that rules of slots do not know. */
export const viewIn = ({ pods }: Snapshot, pod: Candidate): PodView => ({
  ...makePod(pod.name, pod.kind),
  ...pods.find(({ uid }) => uid === pod.uid),
  ...pod,
})

export const actionsOf = (plan: Plan): readonly Action[] => plan.tiers.flatMap(tier => tier.actions)

const started = { ready: true, unreadySince: undefined }

/** Returns the state of the cluster after all actions of the plan, with every pod healthy. */
export function applied(s: Snapshot, plan: Plan): Snapshot {
  const pods = new Map(s.pods.map(pod => [pod.uid, pod]))
  for (const action of actionsOf(plan)) {
    switch (action.type) {
      case 'create':
        pods.set(
          `uid-${action.name}`,
          makePod(action.name, action.kind, {
            slot: action.role?.slot,
            epoch: action.role?.epoch ?? 0,
            templateHash: s.templateHash,
          }),
        )
        break
      case 'convert':
        pods.set(action.pod.uid, {
          ...viewIn(s, action.pod),
          kind: action.to,
          slot: action.role?.slot,
          epoch: action.role?.epoch ?? action.pod.epoch,
          ...started,
          gate: action.pod.gate === 'none' ? 'none' : 'open',
        })
        break
      case 'wake':
        pods.set(action.pod.uid, { ...viewIn(s, action.pod), ...started, gate: 'open' })
        break
      case 'delete':
        pods.delete(action.pod.uid)
        break
      case 'restore':
      case 'adopt':
      case 'release':
      case 'promote':
      case 'retire':
      case 'writeSlot':
      case 'writePolicy':
      case 'endGrant':
      case 'stateSilence':
      case 'deleteSlot':
      case 'applyService':
      case 'applyEndpoints':
      case 'saveRevision':
      case 'deleteRevision':
      case 'giveUp':
      case 'deleteService':
        break
      default:
        action satisfies never
    }
  }
  return makeSnapshot(s.set, [...pods.values()], {
    templateHash: s.templateHash,
    epochs: highestEpochs(s.epochs, [...pods.values()]),
  })
}

function highestEpochs(before: Snapshot['epochs'], pods: readonly PodView[]): ReadonlyMap<number, number> {
  const epochs = new Map(before)
  for (const { slot, epoch } of pods)
    if (slot !== undefined) epochs.set(slot, Math.max(epochs.get(slot) ?? 0, epoch))
  return epochs
}
