import { describe, expect, it } from 'vitest'
import { apiServerVoter, type Fence, nodeVoter } from '../../api/fence.ts'
import type { NodeReportStatus } from '../../api/node-report.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { Snapshot } from '../observe/snapshot.ts'
import {
  container,
  died,
  fence,
  lease,
  nameOf,
  onStage,
  peer,
  pod,
  snapshot,
  understudy,
} from '../testing/fake/snapshots.ts'
import { desiredTasks } from './desired-tasks.ts'
import type { TaskType } from './task.ts'

const runs = { a: 'aaaaaaaaaaaaaaaa', b: 'bbbbbbbbbbbbbbbb', c: 'cccccccccccccccc' } as const
type Name = keyof typeof runs
const voterOn = (node: Name) => nodeVoter(node, runs[node])
const api = apiServerVoter({ uid: 'a', silences: 0 })

const votersOn = (nodes: readonly Name[], over: Partial<Fence> = {}): Fence => ({
  ...{ term: 4, version: 2, timeoutMs: 5_000, isArmed: true, isRevoked: false },
  voters: [api, ...nodes.map(voterOn)],
  ...over,
})
const unarmed: Fence = { term: 5, version: 0, timeoutMs: 5_000, voters: [], isArmed: false, isRevoked: false }
const hears = (node: Name): NodeReportStatus =>
  peer(node, { address: `10.0.0.${node}:9443`, heartbeats: { port: 9443, run: runs[node], key: node } })

/** Node `a`, whose sentinel listens. */
const world = (over: Partial<Snapshot>, known: Parameters<typeof fence>[0] = {}): Snapshot =>
  snapshot({
    pods: [pod('p')],
    slots: [lease({ fence: votersOn(['b']) })],
    reports: new Map((['b', 'c'] as const).map(node => [node, hears(node)])),
    fence: fence({ run: runs.a, ...known }),
    ...over,
  })
const about: readonly TaskType[] = [
  'guard',
  'unguard',
  'addPeer',
  'removePeer',
  'vote',
  'unvote',
  'contradict',
]
const tasksOf = (it: Snapshot) => desiredTasks(it).filter(({ type }) => about.includes(type))
const typesOf = (it: Snapshot) => tasksOf(it).map(({ type }) => type)
const guards = (it: Snapshot) => typesOf(it).filter(type => /guard/.test(type))
const guarded = (uid: string) => ({ guarded: new Map([[uid, { term: 4 }]]) })

describe('a primary here', () => {
  it('D8.contradict: whose silence another node has stated in this term, shows that its agent lives, once for each statement', () => {
    const says = (silentTerm: number | undefined, node: Name = 'b', suspectTerm?: number) => {
      const { namespace, name, incarnation } = lease()
      const slot = { namespace, name, incarnation, role: 'holder', generation: 1 } as const
      const said = {
        ...(silentTerm !== undefined && { silentTerm }),
        ...(suspectTerm !== undefined && { suspectTerm }),
      }
      const slots = [{ ...slot, ...said }]
      const others = (['b', 'c'] as const).map(each => [each, hears(each)] as const)
      return world({ reports: new Map([...others, [node, { ...hears(node), slots }]]) })
    }
    const contradicted = (it: Snapshot) => tasksOf(it).filter(({ type }) => type === 'contradict')
    expect(contradicted(says(4))).toMatchObject([
      { pod: { uid: 'uid-p' }, fence: { term: 4, timeoutMs: 5_000 } },
    ])
    expect([...contradicted(says(3)), ...contradicted(says(undefined))]).toEqual([])
    expect(contradicted(says(4))[0]?.version).not.toBe(contradicted(says(4, 'c'))[0]?.version)
    const suspected = contradicted(says(3, 'b', 4))[0]?.version
    expect(suspected).toBeDefined()
    expect(suspected).not.toBe(contradicted(says(4))[0]?.version)
    expect(contradicted(says(3, 'b', 3))).toEqual([])
  })

  it('is guarded with the voters of its Lease, which become peers', () => {
    const tasks = tasksOf(world({}))
    expect(tasks).toMatchObject([
      {
        type: 'addPeer',
        peer: { node: 'b', address: '10.0.0.b', port: 9443, run: runs.b, key: 'b' },
      },
      { type: 'guard', slot: nameOf(), fence: { term: 4, version: 2 }, pod: { uid: 'uid-p' } },
    ])
  })

  it('with the next voters, too', () => {
    const slots = [lease({ fence: votersOn(['b'], { next: [voterOn('c')] }) })]
    expect(typesOf(world({ slots }))).toEqual(['addPeer', 'addPeer', 'guard'])
  })

  it('is guarded again for another version, term, container or sentinel', () => {
    const versionOf = (over: Partial<Snapshot>) =>
      tasksOf(world(over)).find(({ type }) => type === 'guard')?.version
    const slots = (over: Partial<Fence>) => [lease({ fence: votersOn(['b'], over) })]
    const versions = [
      versionOf({}),
      versionOf({ slots: slots({ version: 3 }) }),
      versionOf({ slots: slots({ term: 5 }) }),
      versionOf({ pods: [pod('p', { containers: [container({ containerId: 'containerd://2' })] })] }),
      versionOf({ sentinel: '2' }),
      versionOf({ fence: fence({ run: runs.c }) }),
    ]
    expect(new Set(versions).size).toBe(versions.length)
    // An agent that starts again, or that has acknowledged it, asks for the same.
    expect(versionOf({ fence: fence({ run: runs.a, ...guarded('uid-p') }) })).toBe(versions[0])
  })

  it.each<[string, Partial<Snapshot>, Parameters<typeof fence>[0]?]>([
    ['in a Lease without a fence', { slots: [lease()] }],
    ['in a term without voters', { slots: [lease({ fence: unarmed })] }],
    ['by a sentinel that does not listen', {}, { run: undefined }],
    ['that is dead', { pods: [pod('p', { serving: died(nameOf()) })] }],
    ['that is being deleted', { pods: [pod('p', { terminating: true })] }],
    ['that is to end', { slots: [lease({ fence: votersOn(['b']), ending: 'uid-p' })] }],
    ['that is not on stage yet', { pods: [understudy('p')] }],
  ])('is not guarded: %s', (_, over, known) => {
    expect(guards(world(over, known))).toEqual([])
  })

  it('is guarded while it is fenced, although an agent that starts cannot look into it', () => {
    const known = { ...guarded('uid-p'), fenced: new Set(['uid-p']) }
    const types = desiredTasks(world({ pods: [understudy('p')] }, known)).map(({ type }) => type)
    expect(types).toContain('guard')
    expect(types).not.toContain('promote')
    // Its probe is suspended meanwhile, and not ended: it knows what it has told.
    expect(types).toContain('probe')
    const stages = new Map([['uid-p', onStage]])
    expect(desiredTasks(world({ pods: [understudy('p')], stages })).map(({ type }) => type)).toContain(
      'probe',
    )
  })
})

describe('a guarded pod', () => {
  const taken = lease({ fence: votersOn(['b']), holder: { name: 'h', uid: 'uid-h' }, epoch: 2, node: 'b' })
  it.each<[string, Partial<Snapshot>, 'asks' | 'ends']>([
    ['whose Lease has no voters any more', { slots: [lease()] }, 'asks'],
    ['whose next term has none yet', { slots: [lease({ fence: unarmed })] }, 'asks'],
    ['whose set keeps no memory any more', { slots: [] }, 'asks'],
    ['that is dead', { pods: [pod('p', { serving: died(nameOf()) })] }, 'ends'],
    ['that has died after its slot went', { slots: [taken], dead: new Map([['uid-p', nameOf()]]) }, 'ends'],
    ['that is a backup again', { slots: [taken], pods: [understudy('p')] }, 'ends'],
  ])('needs no voters: %s', (_, over, how) => {
    const task = tasksOf(world(over, guarded('uid-p'))).find(({ type }) => type === 'unguard')
    const of = how === 'ends' ? undefined : { namespace: 'default', name: 'web-0' }
    expect(task).toMatchObject({ type: 'unguard', pod: { uid: 'uid-p' }, of })
  })

  it('D8.shut: that has lost its slot stays without network, and one that may serve again does not', () => {
    const dead = new Map([['uid-p', nameOf()]])
    const isLoser = (over: Partial<Snapshot>) =>
      tasksOf(world(over, guarded('uid-p'))).flatMap(task => (task.type === 'unguard' ? [task.isLoser] : []))
    expect(isLoser({ slots: [taken], dead })).toEqual([true])
    expect(isLoser({ pods: [pod('p', { serving: died(nameOf()) })] })).toEqual([false])
    expect(isLoser({ slots: [taken], pods: [understudy('p')] })).toEqual([false])
  })

  it.each<[string, Partial<Snapshot>]>([
    ['whose slot went to another pod, until it has ended', { slots: [taken] }],
    ['that is not on stage for a moment', { pods: [understudy('p')] }],
    ['whose containers start again', { pods: [pod('p', { containers: [container({ running: false })] })] }],
    ['that is being deleted', { pods: [pod('p', { terminating: true })] }],
    ['that is retired, although its slot has no Lease', { slots: [], pods: [pod('p', { kind: 'retired' })] }],
  ])('stays guarded as it is: %s', (_, over) => {
    expect(guards(world(over, guarded('uid-p')))).toEqual([])
  })

  it('is never guarded and let go at a time', () => {
    const [guard, unguard] = [world({}, guarded('uid-p')), world({ slots: [] }, guarded('uid-p'))].map(
      tasksOf,
    )
    const keys = [guard, unguard].map(tasks => tasks?.find(({ type }) => /guard/.test(type))?.key)
    expect(keys[0]).toBe(keys[1])
  })
})

describe('a slot of another node', () => {
  const there = (over: Partial<SlotLease> = {}) =>
    lease({ node: 'b', holders: ['a'], fence: votersOn(['a']), ...over })
  const votes = (
    slots: readonly SlotLease[],
    known: Parameters<typeof fence>[0] = {},
    over: Partial<Snapshot> = {},
  ) => tasksOf(world({ pods: [], slots, ...over }, known))

  it('has this node as a voter, and its node as a peer', () => {
    expect(votes([there()])).toMatchObject([
      { type: 'addPeer', peer: { node: 'b' } },
      { type: 'vote', vote: { slot: nameOf(), term: 4, timeoutMs: 5_000, node: 'b', run: runs.b } },
    ])
    const next = there({ fence: votersOn(['c'], { next: [api, voterOn('a')] }) })
    expect(votes([next]).map(({ type }) => type)).toEqual(['addPeer', 'vote'])
  })

  it.each<[string, SlotLease, Parameters<typeof fence>[0]?, Partial<Snapshot>?]>([
    [
      'of an earlier run of this sentinel',
      there({ fence: votersOn([], { voters: [nodeVoter('a', runs.c)] }) }),
    ],
    ['without voters', there({ fence: unarmed })],
    ['whose node has no heartbeats', there(), {}, { reports: new Map([['b', peer('b')]]) }],
    ['whose node is this one', there({ node: 'a' })],
    ['while this sentinel does not listen', there(), { run: undefined }],
  ])('does not count on it: %s', (_, slot, known, over) => {
    expect(votes([slot], known, over).filter(({ type }) => type === 'vote')).toEqual([])
  })

  it('is voted on again for another term, time-out, node or run of its sentinel', () => {
    const versionOf = (slot: SlotLease, over: Partial<Snapshot> = {}) =>
      votes([slot], {}, over).find(({ type }) => type === 'vote')?.version
    const rebooted = { ...hears('b'), heartbeats: { port: 9443, run: runs.c, key: 'b' } }
    const versions = [
      versionOf(there()),
      versionOf(there({ fence: votersOn(['a'], { term: 5 }) })),
      versionOf(there({ fence: votersOn(['a'], { timeoutMs: 6_000 }) })),
      versionOf(there({ node: 'c' })),
      versionOf(there(), { reports: new Map([['b', rebooted]]) }),
      versionOf(there(), { sentinel: '2' }),
    ]
    expect(new Set(versions).size).toBe(versions.length)
    expect(versionOf(there({ fence: votersOn(['a'], { version: 9 }) }))).toBe(versions[0])
  })

  it('gets no answer in a term that the operator has revoked', () => {
    const denied = (isRevoked: boolean) =>
      votes([there({ fence: votersOn(['a'], { isRevoked }) })]).find(({ type }) => type === 'vote')
    expect(denied(true)).toMatchObject({ vote: { isDenied: true } })
    expect(denied(false)).toMatchObject({ vote: { isDenied: false } })
    expect(denied(true)?.version).not.toBe(denied(false)?.version)
  })

  it('is let go when this node is no voter any more, and a peer when no slot needs it', () => {
    const known = { votes: new Set([nameOf()]), peers: new Set(['b', 'c']) }
    expect(votes([there()], known).map(({ type }) => type)).toEqual(['addPeer', 'removePeer', 'vote'])
    const others = there({ fence: votersOn(['c']) })
    expect(votes([others], known)).toMatchObject([
      { type: 'removePeer', node: 'b' },
      { type: 'removePeer', node: 'c' },
      { type: 'unvote', slot: nameOf() },
    ])
    expect(votes([], known).map(({ type }) => type)).toEqual(['removePeer', 'removePeer', 'unvote'])
    // It cannot hear that node for now; what it has promised stays.
    expect(votes([there()], known, { reports: new Map() })).toMatchObject([{ type: 'removePeer', node: 'c' }])
  })
})
