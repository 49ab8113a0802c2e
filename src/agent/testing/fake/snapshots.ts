import type { NodeReportStatus } from '../../../api/node-report.ts'
import type { SlotLease } from '../../../api/slot-lease.ts'
import type { SlotPolicy } from '../../../api/slot-policy.ts'
import { slotName } from '../../../checkpoint/manifest.ts'
import type { Stored } from '../../../checkpoint/store.ts'
import { manifestOf } from '../../../checkpoint/testing/generation.ts'
import type { Task } from '../../decide/task.ts'
import type { ContainerView, FenceView, Kept, PodView, Snapshot } from '../../observe/snapshot.ts'

export const container = (over: Partial<ContainerView> = {}): ContainerView => ({
  name: 'app',
  containerId: 'containerd://c0ffee',
  imageId: 'sha256:1',
  running: true,
  startedAt: 0,
  memoryLimit: undefined,
  ...over,
})

export const pod = (name: string, over: Partial<PodView> = {}): PodView => ({
  namespace: 'default',
  name,
  uid: `uid-${name}`,
  resourceVersion: '1',
  group: 'web',
  kind: 'primary',
  slot: 'web-0',
  epoch: 1,
  ip: '10.0.0.1',
  understudy: false,
  madeForSlot: false,
  ready: true,
  terminating: false,
  serving: undefined,
  understudyState: undefined,
  containers: [container()],
  gate: undefined,
  restoreHash: policy().restoreHash,
  apps: [{ name: 'app', image: 'web:1', ports: [{ containerPort: 8080 }] }],
  ...over,
})

export const understudy = (name: string, over: Partial<PodView> = {}): PodView =>
  pod(name, { kind: 'hotbackup', slot: undefined, understudy: true, ready: false, ...over })

export const lease = (over: Partial<SlotLease> = {}): SlotLease => ({
  namespace: 'default',
  name: 'web-0',
  incarnation: '0123abcd',
  group: 'web',
  policy: policy(),
  holder: { name: 'p', uid: 'uid-p' },
  epoch: 1,
  node: 'a',
  ip: undefined,
  heir: undefined,
  holders: ['b'],
  kept: [],
  ...over,
})

export const policy = (over: Partial<SlotPolicy> = {}): SlotPolicy => ({
  mode: 'Frozen',
  intervalMs: 1_000,
  maxFreezePercent: 2,
  containers: ['app'],
  keep: 2,
  volumeBytes: 1e9,
  disk: true,
  paused: false,
  restoreHash: '0123456789abcdef',
  ...over,
})

export const kept = (over: Partial<Kept> = {}): Kept => ({
  epoch: 1,
  generation: 5,
  restoreHash: policy().restoreHash,
  podUid: 'uid-p',
  takenAt: 0,
  memory: new Map([['app', 1_000_000]]),
  ...over,
})

export const peer = (name: string, over: Partial<NodeReportStatus> = {}): NodeReportStatus => ({
  version: '0',
  address: `${name}:9443`,
  fingerprint: name,
  kernel: '6',
  criu: '4.2',
  architecture: 'x86_64',
  checks: [],
  ready: true,
  slots: [],
  updatedAt: '2030-01-01T00:00:00Z',
  ...over,
})

/** Returns the report of a peer that could restore the slot's memory. */
export const usableAt = (name: string, slot: SlotLease): NodeReportStatus =>
  peer(name, { slots: [{ ...keyOf(slot), role: 'holder', generation: 5, usable: 'Staged' }] })

const keyOf = ({ namespace, name, incarnation }: SlotLease) => ({ namespace, name, incarnation })

/** Returns a generation of the slot as the store lists it. */
export const stored = (over: Parameters<typeof manifestOf>[1] & { readonly generation: number }): Stored => ({
  dir: '',
  manifest: { ...manifestOf(over.generation, over), files: [], bytes: 1 },
  completedAt: 0,
  pipelineMs: 1,
})

/** Node `a`, which has nothing but what the test gives it. */
export const snapshot = (over: Partial<Snapshot> = {}): Snapshot => ({
  node: 'a',
  able: true,
  sentinel: '1',
  pods: [],
  slots: [],
  epochs: new Map(),
  reports: new Map(),
  kept: new Map(),
  stages: new Map(),
  proven: new Set(),
  dead: new Map(),
  handoversPaused: new Set(),
  fence: fence(),
  grants: { records: new Map(), alive: new Map() },
  grantWords: new Map(),
  ...over,
})

/** A sentinel that knows nothing yet. */
export const fence = (over: Partial<FenceView> = {}): FenceView => ({
  run: undefined,
  peers: new Set(),
  guarded: new Map(),
  fenced: new Set(),
  votes: new Set(),
  silent: new Map(),
  suspects: new Map(),
  ...over,
})

export const nameOf = (over: Partial<SlotLease> = {}): string => slotName(lease(over))

/** The clone of the slot's memory, on stage. */
export const onStage = { slot: nameOf(), epoch: 1, generation: 5, state: 'OnStage' } as const

/** The condition `serving` of a pod whose app has ended with the memory of this slot. */
export const died = (slot: string): NonNullable<PodView['serving']> => ({
  status: 'False',
  reason: 'Died',
  message: 'container app (containerd://1) has ended',
  record: { diedWith: slot },
})

export const typesOf = (tasks: readonly Task[]) => tasks.map(({ type }) => type).sort()
