// Long because one world of pods, slots and Migrations serves all of its cases.
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../kube/random.ts'
import type { Move } from '../../slot/decide/move.ts'
import { makeLease, makeSlot } from '../../slot/testing/slots.ts'
import type { Action } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { makeMemorySnapshot, makePrimary, makeUnderstudy, staged } from '../testing/memory.ts'
import { played } from '../testing/played.ts'
import { actionsOf } from '../testing/snapshots.ts'
import { decide } from './decide.ts'

const random = seededRandom(1)

const on = { restoreHash: 'a', containers: 'app=1' }

/** A set at rest: primaries p0, p1 ... on n-p0, n-p1 ..., hot backups h0 ... on n-h0 ... */
function world(replicas: number, hotBackups: number, over: Partial<Snapshot> = {}): Snapshot {
  const primaries = Array.from({ length: replicas }, (_, i) => makePrimary(`p${i}`, i, {}, on))
  const hot = Array.from({ length: hotBackups }, (_, i) => makeUnderstudy(`h${i}`, {}, on))
  const s = makeMemorySnapshot(
    { replicas, hotBackups, updateStrategy: 'OnDelete' },
    [...primaries, ...hot],
    primaries.map(pod => makeSlot(makeLease(pod), [])),
    { restoreHash: 'a', ...over },
    ['far'],
  )
  return rest(s).end
}

const moveOf = (source: string, nodes: readonly string[], over: Partial<Move> = {}): Move => ({
  ...{
    name: 'm',
    uid: 'm',
    source: `uid-${source}`,
    nodeSelector: { disk: 'big' },
    maxDowntimeMs: undefined,
  },
  nodes: new Set(nodes),
  ...over,
})

/** A pod that is made comes to a node, and its containers run. It has no memory yet. */
const runningOn =
  (node: string) =>
  (s: Snapshot): Snapshot => ({
    ...s,
    pods: s.pods.map(pod => {
      const { stage } = pod
      return pod.kind === 'hotbackup' && stage?.successorOf !== undefined
        ? { ...pod, node, ready: true, stage: { ...stage, containers: 'app=1' } }
        : pod
    }),
  })

/** The same, and its memory comes at once. */
const arrivedOn = (node: string) => (s: Snapshot) => staged(runningOn(node)(s))

/** The same, for pods that are made from now on; those of before stay. */
const arrivedBeside = (s: Snapshot): Snapshot => {
  const stays = s.pods.filter(({ name }) => name === 'h0' || name === 'm0')
  const others = arrived({ ...s, pods: s.pods.filter(({ name }) => name !== 'h0' && name !== 'm0') })
  return staged({ ...s, pods: [...stays, ...others.pods] })
}

/** Node `far` has the memory already, as a holder. */
const arrived = arrivedOn('far')

function rest(from: Snapshot, step: (s: Snapshot) => Snapshot = s => s) {
  let s = from
  const actions: Action[] = []
  for (let passes = 0; ; passes += 1) {
    const plan = decide(s, random)
    if (plan.tiers.length === 0) return { end: s, actions }
    if (passes > 60) throw new Error(`does not come to rest: ${JSON.stringify(plan.tiers)}`)
    actions.push(...actionsOf(plan))
    s = step(played(s, plan, { comes: () => true }))
  }
}

const primaryOf = ({ pods, memory }: Snapshot, slot: number): PodView | undefined =>
  pods.find(({ uid }) => uid === memory?.slots.get(slot)?.lease.holder.uid)
const made = (actions: readonly Action[]) => actions.filter(({ type }) => type === 'create')
const kindsIn = (s: Snapshot) => s.pods.map(({ kind }) => kind).sort()

describe('a Migration moves the primary of a slot', () => {
  it('D16.move: to a pod that is made for it on a node of its choice; its memory goes there before it stands still', () => {
    const before = world(1, 1)
    const { end, actions } = rest({ ...before, moves: [moveOf('p0', ['off'])] }, arrivedOn('off'))
    expect(made(actions)).toMatchObject([
      { kind: 'hotbackup', successorOf: { slot: 0, notOn: 'n-p0', nodeSelector: { disk: 'big' } } },
    ])
    const leases = actions.flatMap(each => (each.type === 'writeSlot' ? [each.lease] : []))
    const heirs = leases.map(({ heir, handover }) => [heir?.name, handover !== undefined])
    const name = primaryOf(end, 0)?.name
    expect(heirs.slice(0, 2)).toEqual([
      [name, false],
      [name, true],
    ])
    expect(primaryOf(end, 0)).toMatchObject({ node: 'off', kind: 'primary' })
    expect(end.memory?.slots.get(0)?.lease.incarnation).toBe(before.memory?.slots.get(0)?.lease.incarnation)
    expect(actions.find(({ type }) => type === 'promote')).toMatchObject({
      role: { replaces: { reason: 'Replaced' } },
      lease: { handedOverBy: 'uid-p0' },
      standing: {},
    })
    // The hot backup of before stays, and covers the slot again.
    expect(kindsIn(end)).toEqual(['hotbackup', 'primary'])
    expect(end.memory?.slots.get(0)?.lease.heir?.name).toBe('h0')
  })

  it('away from nodes on which an earlier move of it has failed, if others take the pod', () => {
    const primary = makePrimary('p0', 0, {}, on)
    const lease = makeLease(primary, { holders: ['bad', 'off'] })
    const sizes = { replicas: 1, hotBackups: 0, updateStrategy: 'OnDelete' } as const
    const nodes = ['bad', 'off']
    const before = staged(
      makeMemorySnapshot(sizes, [primary], [makeSlot(lease, [])], { restoreHash: 'a' }, nodes),
    )
    const placed = (avoid: readonly string[]) => {
      const moves = [moveOf('p0', nodes, { avoid })]
      const [create] = made(rest({ ...before, moves }, arrivedOn('off')).actions)
      return create?.type === 'create' ? create.successorOf : undefined
    }
    expect(placed([])).toMatchObject({ near: ['bad', 'off'], avoid: [] })
    expect(placed(['bad'])).toMatchObject({ near: ['off'], avoid: ['bad'] })
  })

  it('D16.nowhere: a pod that no node takes does not keep a slot waiting whose primary is lost meanwhile', () => {
    const asked = { ...world(1, 0), moves: [moveOf('p0', ['off'])] }
    const [making] = actionsOf(decide(asked, random))
    expect(making).toMatchObject({ type: 'create', successorOf: { slot: 0 } })
    const coming = played(asked, decide(asked, random), { comes: () => true })
    const waiting = {
      ...coming,
      pods: coming.pods.map(pod => (pod.kind === 'hotbackup' ? { ...pod, node: undefined } : pod)),
    }
    expect(actionsOf(decide(waiting, random))).toEqual([])
    const lost = staged({ ...waiting, pods: waiting.pods.filter(({ kind }) => kind !== 'primary') })
    const actions = actionsOf(decide(lost, random))
    expect(actions).toMatchObject([
      { type: 'create', kind: 'hotbackup', successorOf: { slot: 0 } },
      { type: 'delete', reason: 'CalledOff' },
    ])
    expect(actions[0]).not.toHaveProperty('successorOf.notOn')
    expect(actions[0]).not.toHaveProperty('successorOf.nodeSelector')
  })

  it('to its heir where that is on such a node: no pod is made for it', () => {
    const { end, actions } = rest({ ...world(1, 1), moves: [moveOf('p0', ['n-h0', 'far'])] })
    const at = actions.findIndex(({ type }) => type === 'promote')
    expect(actions.slice(0, at).map(({ type }) => type)).toEqual(['writeSlot'])
    expect(primaryOf(end, 0)?.name).toBe('h0')
  })

  it('to a hot backup that covers no slot rather than to one that covers another', () => {
    const s = world(2, 2)
    const spare = makeUnderstudy('spare', {}, on)
    const wide = rest({ ...s, set: { ...s.set, hotBackups: 3 }, pods: [...s.pods, spare] }).end
    const heirs = [...(wide.memory?.slots.values() ?? [])].map(({ lease }) => lease.heir?.name)
    const free = wide.pods.find(({ kind, name }) => kind === 'hotbackup' && !heirs.includes(name))
    const nodes = wide.pods.filter(({ kind }) => kind === 'hotbackup').map(({ node = '' }) => node)
    const others = nodes.filter(
      node =>
        node !== wide.pods.find(({ name }) => name === wide.memory?.slots.get(0)?.lease.heir?.name)?.node,
    )
    const { end, actions } = rest({ ...wide, moves: [moveOf('p0', others)] })
    expect(primaryOf(end, 0)?.name).toBe(free?.name)
    expect(made(actions).filter(each => each.type === 'create' && each.successorOf)).toEqual([])
  })

  it('although another primary is not Ready, which may last for ever', () => {
    const s = world(2, 1)
    const ill = (t: Snapshot): Snapshot => ({
      ...t,
      pods: t.pods.map(pod => (pod.name === 'p1' ? { ...pod, ready: false, unreadySince: t.now } : pod)),
    })
    const { end } = rest(ill({ ...s, moves: [moveOf('p0', ['far'])] }), next => ill(arrived(next)))
    expect(primaryOf(end, 0)?.node).toBe('far')
  })

  it('not while a slot waits for a successor, and one slot after the other', () => {
    const s = world(2, 1)
    const moves = [moveOf('p0', ['far']), moveOf('p1', ['far'], { name: 'n' })]
    const waiting = s.pods.filter(pod => pod.name !== 'p1')
    const actions = made(actionsOf(decide({ ...s, pods: waiting, moves }, random)))
    expect(actions.filter(each => each.type === 'create' && each.successorOf)).toEqual([])
    let open = 0
    const { end } = rest({ ...s, moves }, next => {
      const asked = [...(next.memory?.slots.values() ?? [])].filter(
        ({ lease }) => lease.handover !== undefined,
      )
      open = Math.max(open, asked.length)
      return arrived(next)
    })
    expect(open).toBe(1)
    expect([primaryOf(end, 0)?.node, primaryOf(end, 1)?.node]).toEqual(['far', 'far'])
  })

  it('D16.several: pods for several slots are made at the same time, and none of them waits for the stop of another', () => {
    const moves = ['p0', 'p1'].map(name => moveOf(name, ['off'], { uid: name, maxDowntimeMs: 300 }))
    const slow = (s: Snapshot) => withPipeline(arrivedOn('off')(s), 2)
    const { end, actions } = rest({ ...world(2, 1), moves }, slow)
    expect(made(actions)).toMatchObject([
      { successorOf: { slot: 0, migration: 'p0' } },
      { successorOf: { slot: 1, migration: 'p1' } },
    ])
    const leases = [...(end.memory?.slots.values() ?? [])].map(({ lease }) => lease)
    expect(new Set(leases.map(({ heir }) => heir?.name)).size).toBe(2)
    expect(leases.map(({ handover }) => handover)).toEqual([undefined, undefined])
  })

  it('D16.several: the pod for the next slot is made before the first primary is stopped', () => {
    const moves = ['p0', 'p1'].map(name => moveOf(name, ['n-h0', 'off'], { uid: name }))
    const plan = decide({ ...world(2, 1), moves }, random)
    expect(actionsOf(plan)).toMatchObject([
      { type: 'create', successorOf: { slot: 1, migration: 'p1' } },
      { type: 'writeSlot', lease: { slot: 0, handover: 'uid-h0' } },
    ])
    // Nothing delays the swap of a primary that is stopped.
    const standing = played({ ...world(2, 1), moves }, plan, { comes: () => true })
    const without = { ...standing, pods: standing.pods.filter(pod => pod.stage?.madeFor === undefined) }
    expect(actionsOf(decide(without, random))).toMatchObject([{ type: 'promote', pod: { name: 'h0' } }])
  })

  it('D16.several: the write that lets a primary run again waits for no pod that is to be made', () => {
    const moves = ['p0', 'p1'].map(name => moveOf(name, ['off'], { uid: name }))
    let s: Snapshot = { ...world(2, 1), moves }
    for (let i = 0; s.memory?.slots.get(0)?.lease.handover === undefined; i += 1) {
      expect(i).toBeLessThan(20)
      s = arrivedOn('off')(played(s, decide(s, random), { comes: () => true }))
    }
    // The pods that were made for both moves are gone.
    const alone = { ...s, pods: s.pods.filter(({ stage }) => stage?.madeFor === undefined) }
    const [first] = actionsOf(decide(alone, random))
    expect(first).toMatchObject({ type: 'writeSlot', lease: { slot: 0, handover: undefined } })
    expect(made(actionsOf(decide(alone, random)))).toEqual([])
  })

  it('D16.several: a hot backup of an earlier move that is the heir of another slot by now takes that slot', () => {
    const s = world(2, 1)
    const pods = s.pods.map(
      (pod): PodView =>
        pod.name === 'h0' && pod.stage
          ? { ...pod, stage: { ...pod.stage, successorOf: 1, madeFor: 'earlier' } }
          : pod,
    )
    const first = { ...s, pods, moves: [moveOf('p0', ['n-h0'])] }
    const standing = played(first, decide(first, random), { comes: () => true })
    expect(standing.memory?.slots.get(0)?.lease.handover).toBe('uid-h0')
    // A move of the slot for which it was made begins, while the primary of the other slot is stopped.
    const both = { ...standing, moves: [moveOf('p0', ['n-h0']), moveOf('p1', ['off'], { uid: 'n' })] }
    expect(actionsOf(decide(both, random))).toMatchObject([{ type: 'promote', pod: { name: 'h0' } }])
  })

  it('D16.several: of two Migrations of one slot the first counts', () => {
    const s = world(1, 1)
    const moves = [moveOf('p0', ['off']), moveOf('p0', ['n-h0'], { uid: 'n' })]
    expect(made(actionsOf(decide({ ...s, moves }, random)))).toMatchObject([
      { successorOf: { slot: 0, migration: 'm' } },
    ])
  })

  it('D16.several: the heir of two slots takes one of them, and a pod is made for the other', () => {
    const s = world(2, 1)
    const slots = [...(s.memory?.slots.values() ?? [])]
    expect(slots.map(({ lease }) => lease.heir?.name)).toEqual(['h0', 'h0'])
    // The first one waits: its primary would be stopped for too long.
    const moves = ['p0', 'p1'].map(name => moveOf(name, ['n-h0', 'off'], { uid: name, maxDowntimeMs: 300 }))
    const asked = withPipeline({ ...s, moves }, 2)
    expect(made(actionsOf(decide(asked, random)))).toMatchObject([{ successorOf: { slot: 1 } }])
    const { end } = rest(
      { ...s, moves: moves.map(move => ({ ...move, maxDowntimeMs: undefined })) },
      arrivedOn('off'),
    )
    expect([primaryOf(end, 0)?.name, primaryOf(end, 1)?.node]).toEqual(['h0', 'off'])
  })

  it('D16.abort: a Migration that is deleted leaves the primary where it is, running, and its pod goes', () => {
    const before = world(1, 1)
    let s: Snapshot = { ...before, moves: [moveOf('p0', ['far'])] }
    for (let i = 0; s.memory?.slots.get(0)?.lease.handover === undefined; i += 1) {
      expect(i).toBeLessThan(20)
      s = arrived(played(s, decide(s, random), { comes: () => true }))
    }
    const { moves: _, ...called } = s
    const { end, actions } = rest(called)
    expect(primaryOf(end, 0)?.name).toBe('p0')
    expect(end.memory?.slots.get(0)?.lease.handover).toBeUndefined()
    expect(actions.filter(({ type }) => type === 'promote')).toEqual([])
    expect(kindsIn(end)).toEqual(['hotbackup', 'primary'])
  })

  it('the primary is not stopped if that would last longer than the Migration allows', () => {
    const s = world(1, 1)
    const slow = (each: Snapshot): Snapshot => withPipeline(each, 2)
    const move = moveOf('p0', ['n-h0'], { maxDowntimeMs: 300 })
    const asked = { ...s, moves: [move] }
    expect(actionsOf(decide(slow(asked), random))).toEqual([])
    expect(actionsOf(decide(withPipeline(asked, undefined), random))).toEqual([])
    expect(actionsOf(decide(withPipeline(asked, 0.15), random))).toMatchObject([
      { type: 'writeSlot', lease: { handover: 'uid-h0' } },
    ])
    // Once the primary is stopped, only the end of the handover decides.
    const [first] = actionsOf(decide(withPipeline(asked, 0.15), random))
    if (first?.type !== 'writeSlot') throw new Error('nothing is written')
    const standing = played(asked, decide(withPipeline(asked, 0.15), random), { comes: () => true })
    expect(actionsOf(decide(slow(standing), random))).toMatchObject([{ type: 'promote' }])
  })

  it('a pod that was made for it and could not be given the memory is not made again and again', () => {
    const s = world(1, 1)
    const failed = makeUnderstudy(
      'm0',
      { node: 'far' },
      { ...on, successorOf: 0, madeFor: 'm', failed: 'torn' },
    )
    const asked = { ...s, pods: [...s.pods, failed], moves: [moveOf('p0', ['far'])] }
    expect(made(actionsOf(decide(asked, random)))).toEqual([])
  })

  it('D16.again: a pod that an earlier Migration has left, and that could not be given the memory, does not keep the next from its own', () => {
    const s = world(1, 1)
    const failed = makeUnderstudy(
      'm0',
      { node: 'far' },
      { ...on, successorOf: 0, madeFor: 'earlier', failed: 'torn' },
    )
    const asked = {
      ...s,
      pods: [...s.pods.filter(({ name }) => name !== 'h0'), failed],
      moves: [moveOf('p0', ['far'])],
    }
    const { end, actions } = rest(asked, arrivedBeside)
    expect(made(actions)).toMatchObject([{ kind: 'hotbackup', successorOf: { slot: 0, migration: 'm' } }])
    expect(primaryOf(end, 0)?.node).toBe('far')
  })

  it('a hot backup that was made for the slot long ago, and is elsewhere, does not keep the move waiting', () => {
    const s = world(1, 1)
    const pods = s.pods.map(
      (pod): PodView =>
        pod.kind === 'hotbackup' && pod.stage ? { ...pod, stage: { ...pod.stage, successorOf: 0 } } : pod,
    )
    const { end } = rest({ ...s, pods, moves: [moveOf('p0', ['far'])] }, next =>
      next.pods.some(({ node }) => node === 'n-h0') ? arrivedBeside(next) : next,
    )
    expect(primaryOf(end, 0)?.node).toBe('far')
  })

  it('a primary that is stopped for another pod is handed over to that one first', () => {
    const s = world(1, 1)
    const asked = s.pods.map(
      (pod): PodView =>
        pod.kind === 'primary' && pod.stage
          ? { ...pod, stage: { ...pod.stage, handoverRequested: true } }
          : pod,
    )
    const stopped = { ...s, pods: asked }
    const standing = played(stopped, decide(stopped, random), { comes: () => true })
    expect(standing.memory?.slots.get(0)?.lease.handover).toBe('uid-h0')
    const ready = makeUnderstudy(
      't0',
      { node: 'far' },
      { ...on, successorOf: 0, madeFor: 'm', containers: 'app=1' },
    )
    for (const pods of [standing.pods, [...standing.pods, ready]])
      expect(actionsOf(decide({ ...standing, pods, moves: [moveOf('p0', ['far'])] }, random))).toMatchObject([
        { type: 'promote', pod: { name: 'h0' } },
      ])
  })

  it('not to a hot backup on a machine where its memory cannot run, and its heir stays meanwhile', () => {
    const s = world(1, 3)
    if (s.memory === undefined) throw new Error('no memory')
    const heir = s.memory.slots.get(0)?.lease.heir?.name
    const [old = '', other = ''] = s.pods.flatMap(({ kind, name }) =>
      kind === 'hotbackup' && name !== heir ? [name] : [],
    )
    const nodes = new Map(
      s.pods.map(({ name, node = '' }) => {
        const machine = { architecture: 'x86_64', kernel: name === old ? '5.15' : '6.12', criu: '4.2' }
        return [node, { name: node, ready: true, problem: undefined, machine }] as const
      }),
    )
    const heirsFor = (...to: readonly string[]) => {
      const moves = [
        moveOf(
          'p0',
          to.map(name => `n-${name}`),
        ),
      ]
      const asked = {
        ...s,
        memory: { ...s.memory, slots: s.memory?.slots ?? new Map(), copies: 2, nodes },
        moves,
      }
      return actionsOf(decide(asked, random)).flatMap(each =>
        each.type === 'writeSlot' ? [each.lease.heir?.name] : [],
      )
    }
    expect(heirsFor(old, other)).toEqual([other])
    expect(heirsFor(old)).toEqual([heir])
  })

  it('a paused set moves nothing, and a Migration of a pod that is no primary any more asks for nothing', () => {
    const s = world(1, 1)
    const moves = [moveOf('p0', ['far'])]
    expect(actionsOf(decide({ ...s, set: { ...s.set, paused: true }, moves }, random))).toEqual([])
    expect(actionsOf(decide({ ...s, moves: [moveOf('h0', ['far'])] }, random))).toEqual([])
  })
})

/** The last generation took this long until the node of the hot backup had it. */
function withPipeline(s: Snapshot, seconds: number | undefined): Snapshot {
  if (s.memory === undefined) return s
  const slots = [...s.memory.slots].map(([number, slot]) => {
    const copies = slot.copies.map(copy => {
      const { pipelineSeconds: _, ...report } = copy.report
      return { ...copy, report: { ...report, ...(seconds !== undefined && { pipelineSeconds: seconds }) } }
    })
    return [number, { ...slot, copies }] as const
  })
  return { ...s, memory: { ...s.memory, slots: new Map(slots) } }
}
