import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { assign, type SlotToCover, type Understudy } from './heirs.ts'
import { match, type Option } from './match.ts'

const pod = (name: string, node: string): Understudy => ({ name, uid: `uid-${name}`, node })
const slot = (number: number, over: Partial<SlotToCover> = {}): SlotToCover => ({
  slot: number,
  node: 'p',
  heirUid: undefined,
  frozenIn: undefined,
  holders: [],
  newestOn: [],
  ...over,
})
const none = { copies: 2, coldNodes: [], spareNodes: [] }

const worlds = fc.record({
  slots: fc.uniqueArray(
    fc.record({ slot: fc.nat(7), node: fc.constantFrom('a', 'b', 'c', undefined), heir: fc.nat(8) }),
    { selector: ({ slot: number }) => number, maxLength: 6 },
  ),
  pods: fc.uniqueArray(fc.record({ name: fc.nat(6), node: fc.constantFrom('a', 'b', 'c', 'd') }), {
    selector: ({ name }) => name,
    maxLength: 5,
  }),
  copies: fc.integer({ min: 1, max: 3 }),
  colds: fc.subarray(['b', 'c', 'g']),
  spares: fc.subarray(['a', 'e', 'f']),
  kept: fc.subarray(['a', 'b', 'c', 'd', 'e', 'f', 'g']),
  held: fc.subarray(['a', 'b', 'e', 'f', 'g']),
})

describe('heirs and holders', () => {
  it('one understudy is the heir of all that are not on its node', () => {
    const covers = assign([slot(0), slot(1), slot(2, { node: 'h' })], [pod('x', 'h')], none)
    expect([...covers.values()].map(({ heir }) => heir?.name)).toEqual(['x', 'x', undefined])
  })

  it('a slot that is to move to a pod that cannot be its heir keeps the heir that it has', () => {
    const moving = slot(0, { heirUid: 'uid-y', targetUid: 'uid-z' })
    const pods = [pod('x', 'a'), pod('y', 'b'), pod('z', 'p')]
    expect(assign([moving], pods, none).get(0)?.heir?.name).toBe('y')
    expect(assign([{ ...moving, node: 'other' }], pods, none).get(0)?.heir?.name).toBe('z')
  })

  it('D7.holders: a node whose agent is away keeps what it has and gets nothing new; what is left empties nobody', () => {
    const held = slot(0, { holders: ['a', 'b'], newestOn: ['a'], mayKeepOn: ['a', 'b'] })
    const away = {
      copies: 2,
      coldNodes: [],
      spareNodes: ['a', 'b', 'c', 'd'],
      awayNodes: new Set(['b', 'c']),
    }
    expect(assign([held], [], away).get(0)?.holders).toEqual(['a', 'b'])
    expect(assign([slot(0)], [], away).get(0)?.holders).toEqual(['a', 'd'])
    expect(assign([held], [], { ...away, spareNodes: [] }).get(0)?.holders).toEqual(['a', 'b'])
    // No memory may be kept at all.
    expect(assign([held], [], { ...away, copies: 0 }).get(0)?.holders).toEqual([])
  })

  it('D7.kept: of too many that leave those with the newest stay, as they stand in the Lease', () => {
    const held = slot(0, { holders: ['x', 'y', 'z'], mayKeepOn: ['z', 'y', 'x'] })
    const options = { ...none, spareNodes: ['a', 'b'] }
    expect(assign([held], [], options).get(0)?.holders).toEqual(['a', 'b', 'y', 'z'])
  })

  it('D7.holders: what a forbidden node has stays until others have it, and no longer where there are none', () => {
    const held = slot(0, { holders: ['x'], newestOn: ['x'] })
    const options = { ...none, forbiddenNodes: new Set(['x']) }
    expect(assign([held], [], { ...options, spareNodes: ['a'] }).get(0)?.holders).toEqual(['a', 'x'])
    const both = { ...held, holders: ['a', 'x'], newestOn: ['a', 'x'] }
    expect(assign([both], [], { ...options, spareNodes: ['a'] }).get(0)?.holders).toEqual(['a'])
    expect(assign([held], [], options).get(0)?.holders).toEqual([])
  })

  it('a new understudy takes over from one that has too many, but not the slot that lies frozen there', () => {
    const crowded = [0, 1, 2].map(number => slot(number, { heirUid: 'uid-x' }))
    const frozen = crowded.map(each => (each.slot === 2 ? { ...each, frozenIn: 'uid-x' } : each))
    const covers = assign(frozen, [pod('x', 'h'), pod('y', 'i')], none)
    expect([...covers.values()].map(({ heir }) => heir?.name)).toEqual(['x', 'y', 'x'])
  })

  it('an understudy gives up its frozen clone for a slot that no other understudy can have, if an idle one can have the clone', () => {
    // Understudy `x` is the only one off the node of slot 1, and has the clone of slot 0, which `y` could have.
    const shared = [
      slot(0, { node: 'p', heirUid: 'uid-x', frozenIn: 'uid-x' }),
      slot(1, { node: 'i', heirUid: 'uid-x' }),
    ]
    const pods = [pod('x', 'h'), pod('y', 'i')]
    const heirs = (slots: readonly SlotToCover[], of = pods) =>
      [...assign(slots, of, none).values()].map(({ heir }) => heir?.name)
    expect(heirs(shared)).toEqual(['y', 'x'])
    // The report about the old clone comes later than the new heir.
    expect(heirs(shared.map(each => ({ ...each, heirUid: each.slot === 0 ? 'uid-y' : 'uid-x' })))).toEqual([
      'y',
      'x',
    ])
    // No slot moves if that would leave as many without a clone as before.
    const busy = [...shared, slot(2, { node: 'p', heirUid: 'uid-y', frozenIn: 'uid-y' })]
    expect(heirs(busy)).toEqual(['x', 'x', 'y'])
    expect(heirs(busy, [...pods, pod('z', 'k')])).toEqual(['x', 'z', 'y'])
    // One that may never run takes no clone from another, and a handover stays where it goes.
    const [x, y] = [pod('x', 'h'), pod('y', 'i')]
    expect(heirs(shared, [x, { ...y, isComing: true }])).toEqual(['x', 'x'])
    const handedOver = shared.map(each => (each.slot === 0 ? { ...each, targetUid: 'uid-x' } : each))
    expect(heirs(handedOver)).toEqual(['x', 'x'])
  })

  it('D6.placement: an understudy on a machine that cannot go on with the memory is nobody’s heir', () => {
    const unfit = slot(0, { unfitNodes: new Set(['h']), heirUid: 'uid-x' })
    const covers = assign([unfit], [pod('x', 'h'), pod('y', 'i')], {
      copies: 1,
      coldNodes: [],
      spareNodes: ['h', 'j'],
    })
    expect(covers.get(0)).toMatchObject({ heir: { name: 'y' }, holders: ['i'] })
    const alone = assign([unfit], [pod('x', 'h')], { copies: 1, coldNodes: [], spareNodes: ['h', 'j'] })
    expect(alone.get(0)).toMatchObject({ heir: undefined, holders: ['j'] })
  })

  it('any: every slot that can have an heir has one, never on its node; nothing moves a second time', () => {
    fc.assert(
      fc.property(worlds, ({ slots, pods, copies, colds, spares, kept, held }) => {
        const understudies = pods.map(({ name, node }) => pod(`${name}`, node))
        const options = { copies, coldNodes: colds, spareNodes: spares }
        const before = slots.map(each =>
          slot(each.slot, { node: each.node, heirUid: `uid-${each.heir}`, holders: held, newestOn: kept }),
        )
        const covers = assign(before, understudies, options)
        for (const each of before) {
          const { heir, holders } = covers.get(each.slot) ?? { heir: undefined, holders: [] }
          const possible = understudies.filter(({ node }) => node !== each.node)
          expect(heir === undefined).toBe(possible.length === 0)
          expect(holders).not.toContain(each.node)
          expect(heir === undefined || holders[0] === heir.node).toBe(true)
          expect(new Set(holders).size).toBe(holders.length)
          const hot = new Set(understudies.map(({ node }) => node))
          const nodes = new Set([...hot, ...colds, ...spares])
          nodes.delete(each.node ?? '')
          const wanted = holders.slice(0, Math.min(copies, nodes.size))
          // Nodes of hot backups come before those of cold ones, and these before all others; no node of a better kind
          // is left out.
          const tier = (node: string) => (hot.has(node) ? 0 : colds.includes(node) ? 1 : 2)
          expect(wanted.map(tier)).toEqual([...nodes].map(tier).sort().slice(0, wanted.length))
          const leaving = holders.slice(wanted.length)
          for (const node of leaving) expect(held.filter(one => kept.includes(one))).toContain(node)
          if (leaving.length > 0 && wanted.length > 0)
            expect(wanted.every(node => kept.includes(node))).toBe(false)
          if (held.some(node => kept.includes(node) && node !== each.node))
            expect(holders.some(node => kept.includes(node))).toBe(true)
        }
        // No understudy has two slots more than another understudy that could take one of them.
        const load = (uid: string) => [...covers.values()].filter(({ heir }) => heir?.uid === uid).length
        for (const each of before) {
          const heir = covers.get(each.slot)?.heir
          for (const other of understudies)
            if (heir !== undefined && other.node !== each.node)
              expect(load(heir.uid) - load(other.uid)).toBeLessThan(2)
        }
        // As many understudies as possible have a slot, wherever the clones are.
        const frozen = before.map((each, at) => ({
          ...each,
          frozenIn: at % 2 === 0 ? each.heirUid : undefined,
        }))
        const wishes = new Map(
          frozen.map(({ slot: number, node }) => [
            number,
            understudies.filter(each => each.node !== node).map(({ uid }) => ({ uid, rank: 0 })),
          ]),
        )
        const assigned = [...assign(frozen, understudies, options)]
        const used = new Set(assigned.flatMap(([, { heir }]) => heir?.uid ?? []))
        expect(used.size).toBe(match(wishes).size)
        const again = frozen.map(each => ({
          ...each,
          heirUid: new Map(assigned).get(each.slot)?.heir?.uid,
          holders: new Map(assigned).get(each.slot)?.holders ?? [],
        }))
        expect([...assign(again, understudies, options)]).toEqual(assigned)
        const after = before.map(each => ({
          ...each,
          heirUid: covers.get(each.slot)?.heir?.uid,
          holders: covers.get(each.slot)?.holders ?? [],
        }))
        expect(assign([...after].reverse(), [...understudies].reverse(), options)).toEqual(covers)
      }),
      { numRuns: 500 },
    )
  })

  it('any: what is valid stays when the numbers are even', () => {
    const even = [slot(0, { heirUid: 'uid-y' }), slot(1, { heirUid: 'uid-x' })]
    const covers = assign(even, [pod('x', 'h'), pod('y', 'i')], none)
    expect([...covers.values()].map(({ heir }) => heir?.name)).toEqual(['y', 'x'])
  })
})

describe('who takes which slot', () => {
  const wishes = fc.uniqueArray(
    fc.record({
      slot: fc.nat(5),
      options: fc.uniqueArray(fc.record({ uid: fc.constantFrom('a', 'b', 'c', 'd'), rank: fc.nat(1) }), {
        selector: ({ uid }) => uid,
      }),
    }),
    { selector: ({ slot: number }) => number, maxLength: 5 },
  )
  const toMap = (list: { slot: number; options: Option[] }[]) =>
    new Map(list.map(each => [each.slot, each.options]))
  /** Returns the most slots that can be served at once, by trying every choice. */
  const most = ([head, ...rest]: readonly (readonly Option[])[], used: ReadonlySet<string>): number =>
    head === undefined
      ? 0
      : Math.max(
          most(rest, used),
          ...head
            .filter(({ uid }) => !used.has(uid))
            .map(({ uid }) => 1 + most(rest, new Set([...used, uid]))),
        )

  it('any: as many slots as possible, each pod once, and only by its own options', () => {
    fc.assert(
      fc.property(wishes, list => {
        const taken = match(toMap(list))
        expect(new Set(taken.values()).size).toBe(taken.size)
        for (const [number, uid] of taken)
          expect(list.find(each => each.slot === number)?.options.map(option => option.uid)).toContain(uid)
        expect(taken.size).toBe(
          most(
            list.map(each => each.options),
            new Set(),
          ),
        )
      }),
      { numRuns: 500 },
    )
  })

  it('a slot is not served from a pod in which another failed slot lies frozen, if there is another', () => {
    const taken = match(
      new Map([
        [
          0,
          [
            { uid: 'a', rank: 1 },
            { uid: 'b', rank: 1 },
          ],
        ],
        [1, [{ uid: 'a', rank: 0 }]],
      ]),
    )
    expect(taken).toEqual(
      new Map([
        [1, 'a'],
        [0, 'b'],
      ]),
    )
  })
})
