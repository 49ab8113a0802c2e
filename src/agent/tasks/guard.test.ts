import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { AgentError } from '../../api/agent-errors.ts'
import { apiServerVoter, type Fence, nodeVoter } from '../../api/fence.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { silentLog as log } from '../../kube/log.ts'
import { createFencing } from '../state/fencing.ts'
import { type FakeCluster, fakeInquiry } from '../testing/fake/cluster.ts'
import { fakeDriver, pidOf } from '../testing/fake/driver.ts'
import type { FakeMemory } from '../testing/fake/memory.ts'
import { fakeSentinel } from '../testing/fake/sentinel.ts'
import { nameOf, pod } from '../testing/fake/snapshots.ts'
import { atFirst, called, podOf, useTwoNodes } from '../testing/fake/two-nodes.ts'
import { guard, unguard } from './guard.ts'

const runs = { a: 'aaaaaaaaaaaaaaaa', b: 'bbbbbbbbbbbbbbbb' } as const

describe('the agents of two nodes: fences', () => {
  let cluster: FakeCluster
  let a: FakeMemory
  let b: FakeMemory
  const { start, stop, serving, untilFrozen } = useTwoNodes(made => {
    ;({ cluster, a, b } = made)
  })
  const fence = (over: Partial<Fence> = {}): Fence => ({
    ...{ term: 1, version: 1, timeoutMs: 5_000, isArmed: true, isRevoked: false },
    voters: [apiServerVoter({ uid: 'a', silences: 0 }), nodeVoter('b', runs.b)],
    ...over,
  })
  const fenced = (over: Partial<Fence> = {}, slot: SlotLease = atFirst()): SlotLease => ({
    ...slot,
    fence: fence(over),
  })
  const unarmed = { version: 0, voters: [], isArmed: false, isRevoked: false } as const
  const startA = async () => {
    const agent = await start('a', a)
    agent.listens(runs.a)
    return agent
  }
  const startB = async () => {
    const agent = await start('b', b)
    agent.listens(runs.b)
    return agent
  }
  const saidBy = (node: string) => cluster.reports.get(node)?.status?.slots[0]
  const untilGuarded = () => vi.waitFor(() => expect([...a.voters.guarded.keys()]).toEqual(['uid-p']))
  const untilUnguarded = () => vi.waitFor(() => expect(a.voters.unguarded).not.toEqual([]))

  beforeEach(() => {
    for (const [node, run] of Object.entries(runs))
      cluster.heartbeats.set(node, { port: 9443, run, key: `of-${node}` })
    cluster.setLease(fenced())
  })

  it('a primary is guarded with all that runs in its pod, and its report says so', async () => {
    await startB()
    await startA()
    await untilGuarded()
    expect(a.voters.guarded.get('uid-p')).toEqual({
      ...{ name: 'uid-p', slot: nameOf(), term: 1, version: 1, timeoutMs: 5_000, next: undefined },
      ...{ voters: fence().voters, netns: { pid: pidOf('uid-p'), start: 1 }, cgroups: ['kubepods/poduid-p'] },
    })
    await vi.waitFor(() => expect(saidBy('a')?.acknowledged).toEqual({ term: 1, version: 1 }))
    await vi.waitFor(() => expect([...a.voters.peers.values()]).toMatchObject([{ name: 'b', key: 'of-b' }]))
    // Another version is acknowledged, too.
    cluster.setLease(fenced({ version: 2, next: [nodeVoter('b', runs.b)] }))
    await vi.waitFor(() => expect(saidBy('a')?.acknowledged).toEqual({ term: 1, version: 2 }))
  })

  it('the other node votes on it, says what it has stated, and stops when it is no voter any more', async () => {
    await startA()
    const agentB = await startB()
    await vi.waitFor(() =>
      expect([...b.voters.votes.values()]).toEqual([
        { slot: nameOf(), term: 1, timeoutMs: 5_000, node: 'a', run: runs.a, isDenied: false },
      ]),
    )
    await vi.waitFor(() => expect([...b.voters.peers.keys()]).toEqual(['a']))
    agentB.onVoting({ type: 'silent', slot: nameOf(), term: 1 })
    await vi.waitFor(() => expect(saidBy('b')?.silentTerm).toBe(1))
    cluster.setLease(fenced({ version: 2, voters: [apiServerVoter({ uid: 'a', silences: 0 })] }))
    await vi.waitFor(() => expect([...b.voters.votes, ...b.voters.peers]).toEqual([]))
    // The statement counts for its term all the same.
    expect(saidBy('b')?.silentTerm).toBe(1)
  })

  it('a peer whose key is none is none, and harms nobody', async () => {
    cluster.heartbeats.set('b', { port: 9443, run: runs.b, key: 'none' })
    await startB()
    await startA()
    await untilGuarded()
    expect([...a.voters.peers]).toEqual([])
  })

  it('nothing is acknowledged before voters answer', async () => {
    a.voters.answer = false
    await startA()
    await vi.waitFor(() => expect(a.events).toContain('NoAnswers'))
    expect(saidBy('a')?.acknowledged).toBeUndefined()
    // It is no failure to save.
    expect(saidBy('a')?.reason).not.toBe('NoAnswers')
    a.voters.answer = true
    await vi.waitFor(() => expect(saidBy('a')?.acknowledged).toEqual({ term: 1, version: 1 }))
  })

  it('a primary whose slot another pod has does not resume before it has ended', async () => {
    await startB()
    const agentA = await startA()
    await untilFrozen('one')
    await untilGuarded()
    agentA.onVoting({ type: 'stops', name: 'uid-p', term: 1 })
    cluster.setLease(fenced({ term: 2, ...unarmed }, called()))
    await vi.waitFor(() => expect(serving('a', 'p')).toMatchObject({ reason: 'Died' }))
    await untilUnguarded()
    expect(a.voters.unguarded).toEqual([{ name: 'uid-p', isRunning: false, isShut: true }])
  })

  it('nor does what a pod has left that was deleted without its grace, whichever agent asked for its guard', async () => {
    const before = await startA()
    await untilGuarded()
    await vi.waitFor(() => expect(a.watches.size).toBe(1))
    await stop(before)
    cluster.pods.get('a')?.remove('default/p')
    const agentA = await startA()
    agentA.onVoting({ type: 'stops', name: 'uid-p', term: 1 })
    await untilUnguarded()
    expect(a.voters.unguarded).toEqual([{ name: 'uid-p', isRunning: false, isShut: true }])
  })

  it('a primary without voters resumes, unless the API server knows of some', async () => {
    const agentA = await startA()
    await untilGuarded()
    agentA.onVoting({ type: 'stops', name: 'uid-p', term: 1 })
    // The agent sees a Lease from before the slot went to another pod.
    cluster.setLease(fenced({ term: 3 }, called()), false)
    const truth = [...cluster.truth]
    cluster.setLease(fenced({ term: 2, ...unarmed }))
    for (const [key, lease] of truth) cluster.truth.set(key, lease)
    const asked = vi.spyOn(cluster.truth, 'get')
    await vi.waitFor(() => expect(asked).toHaveBeenCalled())
    await sleep(20)
    expect(a.voters.unguarded).toEqual([])
    cluster.setLease(fenced({ term: 4, ...unarmed }))
    await untilUnguarded()
    expect(a.voters.unguarded).toEqual([{ name: 'uid-p', isRunning: true }])
    await vi.waitFor(() => expect(a.events).toEqual(['Fenced', 'Unfenced']))
    cluster.setLease(fenced({ term: 4 }))
    await untilGuarded()
  })

  it('after the death of a container, all processes of its pod end before the guard does', async () => {
    a.watches.set('uid-p/side/c0ffee', {
      ...{ process: { pid: pidOf('uid-p'), start: 1 }, heir: undefined, isClosed: false, died: false },
    })
    const work = {
      ...{ sentinel: fakeSentinel(a), driver: fakeDriver(a), inquiry: fakeInquiry(cluster, 'a'), log },
      fencing: createFencing({ changed: () => undefined, onFenced: () => undefined }),
    }
    const task = { type: 'unguard', key: '', version: '', pod: pod('p'), of: undefined } as const
    await unguard(work, task, AbortSignal.timeout(10_000))
    expect(a.voters.unguarded).toEqual([{ name: 'uid-p', isRunning: false }])
  })

  it('containers that were started while the pod was fenced end before the guard does, although no sentinel watches them', async () => {
    const fencing = createFencing({ changed: () => undefined, onFenced: () => undefined })
    const work = {
      ...{ sentinel: fakeSentinel(a), driver: fakeDriver(a), inquiry: fakeInquiry(cluster, 'a'), log },
      fencing,
    }
    const task = { type: 'unguard', key: '', version: '', pod: pod('p'), of: undefined } as const
    fencing.onNews({ type: 'stops', name: 'uid-p', term: 1 })
    await unguard(work, task, AbortSignal.timeout(10_000))
    expect(a.voters.unguarded).toEqual([{ name: 'uid-p', isRunning: false }])
  })

  it('a pod that was stopped for an earlier slot is not taken for stopped in the slot that it has begun since', async () => {
    const fencing = createFencing({ changed: () => undefined, onFenced: () => undefined })
    const sentinel = fakeSentinel(a)
    const work = { sentinel, driver: fakeDriver(a), fencing, log }
    vi.spyOn(sentinel, 'guard').mockRejectedValueOnce(
      new AgentError('SentinelRefused', 'primary: refused another-slot'),
    )
    fencing.onNews({ type: 'stops', name: 'uid-p', term: 1 })
    const about = { type: 'guard', key: '', version: '', pod: pod('p'), slot: nameOf() } as const
    await guard(work, { ...about, fence: fence({ term: 7 }) }, AbortSignal.timeout(10_000))
    expect([...a.voters.guarded.keys()]).toEqual(['uid-p'])
    expect(fencing.isFenced('uid-p')).toBe(false)
  })

  it('D8.shut: what a fenced pod has answered does not leave when its guard ends after its slot went', async () => {
    const fencing = createFencing({ changed: () => undefined, onFenced: () => undefined })
    const work = {
      ...{ sentinel: fakeSentinel(a), driver: fakeDriver(a), inquiry: fakeInquiry(cluster, 'a'), log },
      fencing,
    }
    const about = { type: 'unguard', key: '', version: '', pod: pod('p'), of: undefined } as const
    fencing.onNews({ type: 'serves', name: 'uid-p', term: 1 })
    await unguard(work, { ...about, isLoser: true }, AbortSignal.timeout(10_000))
    fencing.onNews({ type: 'stops', name: 'uid-p', term: 1 })
    await unguard(work, { ...about, isLoser: true }, AbortSignal.timeout(10_000))
    const shut = a.voters.unguarded.map(({ isShut = false }) => isShut)
    expect(shut).toEqual([false, true])
  })

  it('a primary whose Lease is gone resumes, unless it is being deleted: another pod may have had its slot at last', async () => {
    const fencing = createFencing({ changed: () => undefined, onFenced: () => undefined })
    const driver = fakeDriver(a)
    const work = { sentinel: fakeSentinel(a), inquiry: fakeInquiry(cluster, 'a'), driver, fencing, log }
    const of = { namespace: 'default', name: 'web-0' }
    const letGo = () =>
      unguard(work, { type: 'unguard', key: '', version: '', pod: pod('p'), of }, AbortSignal.timeout(10_000))
    cluster.truth.clear()
    cluster.put('a', podOf('p', 'primary', { deleted: true }))
    fencing.onNews({ type: 'stops', name: 'uid-p', term: 1 })
    await letGo()
    expect(a.voters.unguarded).toEqual([])
    cluster.put('a', podOf('p', 'primary'))
    await letGo()
    expect(a.voters.unguarded).toHaveLength(1)
    // No other pod had the slot of a primary that serves: it may end in its own time.
    cluster.put('a', podOf('p', 'primary', { deleted: true }))
    fencing.onNews({ type: 'serves', name: 'uid-p', term: 1 })
    await letGo()
    expect(a.voters.unguarded).toHaveLength(2)
  })

  it('an agent that starts guards an understudy that is fenced, leaves it alone else, and can end it', async () => {
    const theirs = (over: Partial<Fence>) => fenced({ voters: [nodeVoter('a', runs.a)], ...over }, called())
    await startA()
    const before = await startB()
    await untilFrozen('one')
    cluster.setLease(theirs({ term: 2 }))
    await vi.waitFor(() => expect(serving('b', 'h')).toMatchObject({ reason: 'OnStage' }))
    await vi.waitFor(() => expect(b.voters.guarded.get('uid-h')?.term).toBe(2))
    await stop(before)
    b.voters.asleep.add('uid-h')
    cluster.setLease(theirs({ term: 3 }))
    const { restores } = b.counts
    const agentB = await startB()
    agentB.onVoting({ type: 'stops', name: 'uid-h', term: 2 })
    await vi.waitFor(() => expect(b.voters.guarded.get('uid-h')?.term).toBe(3))
    expect(saidBy('b')?.usable).toBeUndefined()
    cluster.setLease({ ...theirs({ term: 3 }), ending: 'uid-h' })
    await vi.waitFor(() => expect(b.voters.unguarded).toEqual([{ name: 'uid-h', isRunning: false }]))
    expect(b.counts.restores).toBe(restores)
  })

  it('the agent saves no fenced primary, and saves it again when it serves', async () => {
    await startB()
    const agentA = await startA()
    await untilFrozen('one')
    agentA.onVoting({ type: 'stops', name: 'uid-p', term: 1 })
    await vi.waitFor(() => expect(saidBy('a')?.reason).toBe('Fenced'))
    const { dumps } = a.counts
    a.running.set('uid-p', 'two')
    cluster.put('a', podOf('p', 'primary'))
    expect(a.counts.dumps).toBe(dumps)
    agentA.onVoting({ type: 'serves', name: 'uid-p', term: 1 })
    await untilFrozen('two')
    expect(saidBy('a')?.reason).toBeUndefined()
    expect(a.events.filter(reason => /enced/.test(reason))).toEqual(['Fenced', 'Unfenced'])
  })

  it('a handover waits for it, and its pause is for other failures', async () => {
    await startB()
    await startA()
    await untilFrozen('one')
    // The sentinel has stopped it, and this agent has not heard of that yet.
    a.voters.refuseStops = true
    cluster.setLease({ ...fenced(), handover: 'uid-h' })
    await vi.waitFor(() => expect(saidBy('a')?.reason).toBe('Fenced'))
    expect(saidBy('a')?.handoverPaused).toBeUndefined()
    a.voters.refuseStops = false
    await vi.waitFor(() => expect(saidBy('a')?.final).toBe(true))
    expect(a.events).not.toContain('Fenced')
  })
})
