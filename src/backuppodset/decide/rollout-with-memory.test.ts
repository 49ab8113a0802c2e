// Long because it is a list of situations for one pure function.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../kube/random.ts'
import type { SlotMemory } from '../../slot/decide/memory-view.ts'
import { makeLease, makeSlot } from '../../slot/testing/slots.ts'
import type { Action, Plan } from '../plan.ts'
import type { Revision, StoredRevision } from '../revisions/revision.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { makeMemorySnapshot, makePrimary, makeUnderstudy, staged } from '../testing/memory.ts'
import { played } from '../testing/played.ts'
import { actionsOf } from '../testing/snapshots.ts'
import { decide } from './decide.ts'
import { whyRollWaits } from './relay.ts'

const random = seededRandom(1)

/** A template named by two letters: the first tells which memory its pods can be given, both tell the template. */
const template = (hash: string): Revision => ({
  templateHash: hash,
  restoreHash: hash.slice(0, 1),
  template: { spec: { containers: [{ name: 'app', image: hash }] } },
  containers: ['app'],
})
const stored = (hash: string, number: number): StoredRevision => ({
  ...template(hash),
  name: `bps-${hash}`,
  uid: hash,
  resourceVersion: '1',
  number,
})

/** Changes the template of the set; earlier templates are remembered. */
function edited(s: Snapshot, hash: string, wish: Partial<Snapshot['set']> = {}): Snapshot {
  const known = new Map((s.revisions?.stored ?? []).map(it => [it.templateHash, it]))
  if (!known.has(hash))
    known.set(hash, stored(hash, 1 + Math.max(0, ...[...known.values()].map(it => it.number))))
  const current = template(hash)
  return {
    ...s,
    set: { ...s.set, ...wish },
    templateHash: hash,
    restoreHash: current.restoreHash,
    revisions: { current, stored: [...known.values()].sort((a, b) => b.number - a.number) },
  }
}

/** Every pod runs, of template `a1`, and the memory of every slot is in its place. */
function begun(wish: Partial<Snapshot['set']>): Snapshot {
  const { replicas = 1, hotBackups = 1 } = wish
  const of = { templateHash: 'a1' }
  const on = { restoreHash: 'a' }
  const primaries = Array.from({ length: replicas }, (_, i) => makePrimary(`p${i}`, i, of, on))
  const hot = Array.from({ length: hotBackups }, (_, i) => makeUnderstudy(`h${i}`, of, on))
  const s = makeMemorySnapshot(
    { replicas, hotBackups, updateStrategy: 'OnDelete', ...wish },
    [...primaries, ...hot],
    primaries.map(pod => makeSlot(makeLease(pod), [])),
    { templateHash: 'a1' },
  )
  return rest(edited(s, 'a1')).end
}

const allCome = { comes: () => true }

/** Plays passes until no action is left. */
function rest(from: Snapshot, check: (s: Snapshot, plan: Plan) => void = () => {}) {
  let s = from
  const actions: Action[] = []
  for (let passes = 0; ; passes += 1) {
    const plan = decide(s, random)
    check(s, plan)
    if (plan.tiers.length === 0) return { end: s, actions }
    if (passes > 200) throw new Error(`does not come to rest: ${JSON.stringify(plan.tiers)}`)
    actions.push(...actionsOf(plan))
    s = played(s, plan, allCome)
  }
}

const livesOf = (s: Snapshot) => [...(s.memory?.slots.values() ?? [])].map(({ lease }) => lease.incarnation)
const hashesOf = (s: Snapshot) => [...new Set(s.pods.map(({ templateHash }) => templateHash))]
const types = (actions: readonly Action[]) => [...new Set(actions.map(({ type }) => type))]

/** Checks what no plan may do, whatever came before it. */
function keepsMemory(s: Snapshot, plan: Plan): void {
  const permitted = (slot: number) =>
    s.set.allowStateLoss && s.memory?.slots.get(slot)?.lease.givenUpFor === s.templateHash
  const alive = (slot: number): PodView | undefined => {
    const uid = s.memory?.slots.get(slot)?.lease.holder.uid
    return s.pods.find(pod => pod.uid === uid && pod.ready && !pod.stage?.died)
  }
  const gone = new Set<string>()
  for (const action of actionsOf(plan)) {
    if ((action.type === 'delete' && action.reason !== 'Surplus') || action.type === 'retire')
      gone.add(action.pod.uid)
    if (action.type === 'create' && action.kind === 'primary' && action.role && alive(action.role.slot))
      expect(permitted(action.role.slot), 'a successor without memory beside one that has it').toBe(true)
    if (action.type === 'promote') {
      const slot = s.memory?.slots.get(action.role.slot)
      expect(action.pod.stage?.restoreHash, 'memory fits its pod').toBe(slot?.lease.restoreHash)
      if (alive(action.role.slot))
        expect([slot?.source?.final, slot?.copies.some(({ report }) => report.final)]).toEqual([true, true])
    }
    if (action.type === 'giveUp') expect(s.set.allowStateLoss).toBe(true)
  }
  for (const { lease } of s.memory?.slots.values() ?? [])
    if (alive(lease.slot) && !permitted(lease.slot))
      expect(gone.has(lease.holder.uid), `the holder of slot ${lease.slot} goes`).toBe(false)
}

describe('a template that memory fits', () => {
  it('D3.rolls-with-memory: hot backups one by one, then slots one by one, each with its memory', () => {
    const before = begun({ replicas: 2, hotBackups: 2 })
    const { end, actions } = rest(edited(before, 'a2', { updateStrategy: 'RollingUpdate' }), keepsMemory)
    expect(hashesOf(end)).toEqual(['a2'])
    expect(livesOf(end)).toEqual(livesOf(before))
    const steps = actions.flatMap(action =>
      action.type === 'delete' && action.reason === 'Outdated'
        ? ['hot']
        : action.type === 'promote'
          ? [`slot ${action.role.slot}`]
          : [],
    )
    expect(steps).toEqual(['hot', 'hot', 'slot 0', 'slot 1'])
    expect(actions.filter(({ type }) => type === 'create')).toEqual(
      actions.filter(action => action.type === 'create' && action.kind === 'hotbackup'),
    )
  })

  it('a primary is asked to stand still first, and nobody follows it before its last generation is there', () => {
    const rolled = edited(begun({}), 'a2', { updateStrategy: 'RollingUpdate' })
    let s = rolled
    // Until the Lease asks for the handover.
    for (let i = 0; s.memory?.slots.get(0)?.lease.handover === undefined; i += 1) {
      expect(i).toBeLessThan(20)
      s = played(s, decide(s, random), allCome)
    }
    const [slot] = s.memory?.slots.values() ?? []
    if (slot?.source === undefined) throw new Error('nothing is known of the source')
    const { final: _, ...running } = slot.source
    const notYet = { ...s, memory: { ...s.memory, slots: new Map([[0, { ...slot, source: running }]]) } }
    expect(actionsOf(decide(notYet as Snapshot, random))).toEqual([])
    const older = { ...slot, source: { ...slot.source, takenAt: '2030-01-01T00:00:09Z' } }
    expect(
      actionsOf(decide({ ...s, memory: { ...s.memory, slots: new Map([[0, older]]) } } as Snapshot, random)),
    ).toEqual([])
    expect(actionsOf(decide(s, random))).toMatchObject([
      {
        type: 'promote',
        role: { slot: 0, replaces: { reason: 'Replaced' } },
        lease: { handover: undefined },
      },
    ])
  })

  it('it goes on where it is when the template is taken back', () => {
    let s = edited(begun({}), 'a2', { updateStrategy: 'RollingUpdate' })
    for (let i = 0; s.memory?.slots.get(0)?.lease.handover === undefined; i += 1) {
      expect(i).toBeLessThan(20)
      s = played(s, decide(s, random), allCome)
    }
    const back = edited(s, 'a1')
    expect(actionsOf(decide(back, random))).toMatchObject([
      { type: 'writeSlot', lease: { handover: undefined } },
    ])
  })
})

const arrive = (s: Snapshot): Snapshot =>
  staged({ ...s, pods: s.pods.map(pod => (pod.kind === 'hotbackup' ? { ...pod, ready: true } : pod)) })

describe('D3.relay: slots that no hot backup can take', () => {
  const of = { templateHash: 'a1' }
  const on = { restoreHash: 'a' }
  const nodes = ['n-p0', 'n-p1', 'x']
  const primaries = [makePrimary('p0', 0, of, on), makePrimary('p1', 1, of, on)]
  /** Their memory is on nodes only, or beside a hot backup of the new template. */
  const world = (pods: readonly PodView[], wish: Partial<Snapshot['set']>, known = nodes): Snapshot => {
    const held = primaries.slice(0, wish.replicas)
    const slots = held.map(pod => makeSlot(makeLease(pod), []))
    const s = makeMemorySnapshot(
      { updateStrategy: 'OnDelete', ...wish },
      [...held, ...pods],
      slots,
      { templateHash: 'a1' },
      known,
    )
    const { end } = rest(edited(staged(s), 'a1'))
    return edited(end, 'a2', { updateStrategy: 'RollingUpdate' })
  }
  const begin = (s: Snapshot) => rest(s, keepsMemory)
  const made = ({ actions }: { actions: readonly Action[] }) =>
    actions.flatMap(action => (action.type === 'create' && action.successorOf ? [action] : []))
  it('go to pods that are made for them, one after the other, where their memory is and not beside their primary', () => {
    const before = world([], { replicas: 2, hotBackups: 0 })
    const lives = livesOf(before)
    let s = before
    const created: ReturnType<typeof made> = []
    for (let slot = 0; slot < 3; slot += 1) {
      const step = begin(s)
      created.push(...made(step))
      // No other pod is made meanwhile, and the relay does not count as a surplus hot backup.
      expect(begin(step.end).actions).toEqual([])
      // The relay takes no other slot, and is heir of none.
      const slotOf = (name: string | undefined) =>
        created.find(it => it.name === name)?.successorOf?.slot ?? 'another'
      for (const it of step.actions) {
        if (it.type === 'promote') expect(slotOf(it.pod.name)).toBe(it.role.slot)
        if (it.type === 'writeSlot' && it.lease.heir) expect(slotOf(it.lease.heir.name)).toBe(it.lease.slot)
      }
      s = arrive(step.end)
    }
    expect(created).toMatchObject([
      { kind: 'hotbackup', successorOf: { slot: 0, notOn: 'n-p0' } },
      { kind: 'hotbackup', successorOf: { slot: 1, notOn: 'n-p1' } },
    ])
    for (const { revision, successorOf } of created) {
      expect(revision).toBeUndefined()
      expect(successorOf?.near.length).toBeGreaterThan(0)
      expect(successorOf?.near).not.toContain(successorOf?.notOn)
    }
    expect(hashesOf(s)).toEqual(['a2'])
    expect(livesOf(s)).toEqual(lives)
    expect(s.pods).toHaveLength(2)
  })

  const beside = makeUnderstudy('h0', { templateHash: 'a2', node: 'n-p0' }, on)
  it('likewise where the only hot backup stands beside the last primary', () => {
    const s = world([beside], { replicas: 1, hotBackups: 1 })
    const step = begin(s)
    expect(made(step)).toMatchObject([{ successorOf: { slot: 0, notOn: 'n-p0' } }])
    const { end } = begin(arrive(step.end))
    expect(hashesOf(end)).toEqual(['a2'])
    expect(livesOf(end)).toEqual(livesOf(s))
    expect(end.pods.map(({ kind }) => kind).sort()).toEqual(['hotbackup', 'primary'])
  })

  it('what was made goes first, and at once, when the template is taken back', () => {
    const { end } = begin(world([beside], { replicas: 1, hotBackups: 1 }))
    const back = edited(arrive(end), 'a1')
    const deleted = actionsOf(decide(back, random)).flatMap(it => (it.type === 'delete' ? [it] : []))
    expect(deleted).toMatchObject([{ reason: 'Surplus', pod: { stage: { successorOf: 0 } } }])
  })

  it.each<[string, RegExp, (s: Snapshot) => Snapshot]>([
    [
      'no other node has its memory',
      /only node n-p0 has its memory; add a node/,
      s => withSlot(s, { copies: [] }),
    ],
    [
      'it cannot be saved',
      /its primary cannot be saved for the handover: too large/,
      s => withSlot(s, { source: { ...sourceOf(s), reason: 'VolumesTooLarge', message: 'too large' } }),
    ],
    [
      'it stood still in vain',
      /no successor was ready in time/,
      s => withSlot(s, { source: { ...sourceOf(s), handoverPaused: true } }),
    ],
    [
      'nothing may be saved',
      /its primary cannot be saved for the handover: ask somebody/,
      s => ({ ...s, memory: { ...s.memory, refused: { reason: 'R', message: 'ask somebody' } } }) as Snapshot,
    ],
  ])('are told with the cure where %s, and nothing is made', (_, why, change) => {
    const s = change(world([], { replicas: 1, hotBackups: 0 }))
    expect(made({ actions: actionsOf(decide(s, random)) })).toEqual([])
    expect(whyRollWaits(s)).toMatch(why)
  })

  it('are told where the pod that is made for them does not start', () => {
    const { end } = begin(world([], { replicas: 1, hotBackups: 0 }))
    expect(whyRollWaits(end)).toBeUndefined()
    const pods = end.pods.map(pod =>
      pod.kind === 'hotbackup' ? { ...pod, node: undefined, stuck: '0/1 nodes are available' } : pod,
    )
    expect(whyRollWaits({ ...end, pods })).toMatch(
      /does not start: 0\/1 nodes.*make room on a node other than n-p0/,
    )
    // As long as one slot makes progress there is nothing to report.
    expect(whyRollWaits(world([], { replicas: 2, hotBackups: 0 }))).toBeUndefined()
  })

  const withSlot = (s: Snapshot, over: Partial<SlotMemory>): Snapshot => {
    const slots = [...(s.memory?.slots ?? [])].map(([n, it]) => [n, { ...it, ...over }] as const)
    return { ...s, ...(s.memory && { memory: { ...s.memory, slots: new Map(slots) } }) }
  }
  const sourceOf = (s: Snapshot) => {
    const source = s.memory?.slots.get(0)?.source
    if (source === undefined) throw new Error('nothing is known of the source')
    return source
  }
})

describe('a template that memory does not fit', () => {
  it.each([
    ['D3.on-delete: under OnDelete changes nothing', { updateStrategy: 'OnDelete' }],
    ['D3.blocked: under RollingUpdate changes nothing either', { updateStrategy: 'RollingUpdate' }],
    [
      'nor does it when memory may be lost, but nobody rolls',
      { updateStrategy: 'OnDelete', allowStateLoss: true },
    ],
  ] as const)('%s', (_, wish) => {
    const s = edited(begun({ replicas: 2, hotBackups: 2 }), 'b1', wish)
    expect(actionsOf(decide(s, random))).toEqual([])
  })

  it('D3.crash-before-roll: a crash brings the memory back, and the next understudy is of the old template', () => {
    const before = edited(begun({}), 'b1')
    const died = {
      ...before,
      pods: before.pods.map(pod =>
        pod.kind === 'primary' && pod.stage
          ? { ...pod, ready: false, stage: { ...pod.stage, died: true } }
          : pod,
      ),
    }
    const { end, actions } = rest(died, keepsMemory)
    expect(livesOf(end)).toEqual(livesOf(before))
    expect(actions).toContainEqual(
      expect.objectContaining({ type: 'create', kind: 'hotbackup', revision: stored('a1', 1) }),
    )
    expect(hashesOf(end)).toEqual(['a1'])
  })

  it('D3.allow-state-loss: where it may be lost that is said before anything is done', () => {
    const before = begun({ replicas: 2, hotBackups: 1 })
    const wish = { updateStrategy: 'RollingUpdate', allowStateLoss: true } as const
    const { end, actions } = rest(edited(before, 'b1', wish), keepsMemory)
    expect(types(actions.slice(0, 2))).toEqual(['giveUp'])
    expect(actions.slice(0, 2).map(it => (it.type === 'giveUp' ? it.lease.slot : -1))).toEqual([0, 1])
    expect(hashesOf(end)).toEqual(['b1'])
    for (const life of livesOf(end)) expect(livesOf(before)).not.toContain(life)
  })

  it('a primary serves until the one that begins anew does', () => {
    const wish = { updateStrategy: 'RollingUpdate', allowStateLoss: true } as const
    let s = edited(begun({}), 'b1', wish)
    for (let i = 0; !s.pods.some(({ epoch }) => epoch === 2); i += 1) {
      expect(i).toBeLessThan(20)
      s = played(s, decide(s, random), allCome)
    }
    const starting = s.pods.map(pod => (pod.epoch === 2 ? { ...pod, ready: false } : pod))
    expect(actionsOf(decide(staged({ ...s, pods: starting }), random))).toEqual([])
    expect(types(rest(s, keepsMemory).actions)).toContain('retire')
  })
})

describe('whatever happens', () => {
  const events = fc.oneof(
    fc.record({
      type: fc.constant('edit' as const),
      hash: fc.constantFrom('a1', 'a2', 'b1', 'b2', 'c1'),
      updateStrategy: fc.constantFrom('OnDelete' as const, 'RollingUpdate' as const),
      allowStateLoss: fc.boolean(),
    }),
    fc.record({ type: fc.constant('die' as const), which: fc.nat(9) }),
    fc.record({ type: fc.constant('lose' as const), which: fc.nat(9) }),
    fc.record({ type: fc.constant('passes' as const), count: fc.integer({ min: 1, max: 6 }) }),
  )

  // The property below found this, once in fifteen thousand walks.
  it('a pod that was made for a slot which somebody else has taken is of use to others', () => {
    let s = begun({ replicas: 2, hotBackups: 1 })
    const strike = (which: number) => {
      const hit = s.pods.filter(({ kind }) => kind === 'primary')[which]
      if (hit?.stage === undefined) throw new Error('no primary')
      const dead = { ...hit, ready: false, stage: { ...hit.stage, died: true } }
      s = staged({ ...s, pods: s.pods.map(pod => (pod === hit ? dead : pod)) })
    }
    strike(0)
    s = edited(s, 'a2', { updateStrategy: 'RollingUpdate', allowStateLoss: false })
    strike(1)
    for (let passes = 0; passes < 3; passes += 1) s = played(s, decide(s, random), allCome)
    const made = s.pods.find(({ stage }) => stage?.successorOf === 1 && stage.successorOf !== undefined)
    expect(made?.kind).toBe('hotbackup')
    s = staged({ ...s, pods: s.pods.filter(pod => pod.kind === 'primary' || pod === made) })
    const { end } = rest(arrive(s), keepsMemory)
    expect(hashesOf(end)).toEqual(['a2'])
  })

  it('no plan retires the only holder of memory that may not be lost, and every walk comes to its end', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 3 }),
        fc.array(events, { maxLength: 12 }),
        (replicas, hotBackups, walk) => {
          let s = begun({ replicas, hotBackups })
          const pass = () => {
            const plan = decide(s, random)
            keepsMemory(s, plan)
            s = played(s, plan, allCome)
          }
          for (const event of walk) {
            if (event.type === 'edit') {
              const { hash, type: _, ...wish } = event
              s = edited(s, hash, wish)
            } else if (event.type === 'passes') for (let i = 0; i < event.count; i += 1) pass()
            else {
              const kind = event.type === 'die' ? 'primary' : 'hotbackup'
              const pods = s.pods.filter(pod => pod.kind === kind)
              const hit = pods[event.which % Math.max(1, pods.length)]
              if (hit?.stage === undefined) continue
              const dead = { ...hit, ready: false, stage: { ...hit.stage, died: true } }
              s = staged({
                ...s,
                pods: s.pods.flatMap(pod => (pod !== hit ? [pod] : event.type === 'die' ? [dead] : [])),
              })
            }
          }
          let { end, actions } = rest(s, keepsMemory)
          // A pod that is made for a slot becomes ready in time.
          do ({ end, actions } = rest(arrive(end), keepsMemory))
          while (actions.length > 0)
          const isBlocked =
            !s.set.allowStateLoss &&
            [...(end.memory?.slots.values() ?? [])].some(({ lease }) => lease.restoreHash !== end.restoreHash)
          if (end.set.updateStrategy === 'RollingUpdate' && !isBlocked)
            expect(hashesOf(end)).toEqual([end.templateHash])
          // The set was allowed to lose memory, and the roll was stopped before the primaries had their turn.
          const isHalfway =
            end.set.updateStrategy === 'OnDelete' &&
            walk.some(event => event.type === 'edit' && event.allowStateLoss)
          // Whatever the templates: a hot backup could continue with the memory of each slot.
          const kinds = new Set(
            end.pods.filter(({ kind }) => kind === 'hotbackup').map(({ stage }) => stage?.restoreHash),
          )
          const wanted = new Set(
            [...(end.memory?.slots.values() ?? [])].map(({ lease }) => lease.restoreHash),
          )
          if (wanted.size === 1 && !isHalfway) for (const hash of wanted) expect(kinds).toContain(hash)
        },
      ),
      { numRuns: 150 },
    )
  })
})
