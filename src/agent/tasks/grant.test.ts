/** Two real agents: pod `p` on node `a` is the primary, and pod `h` on node `b` has a grant. */
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { type Grant, grantOverAnnotation } from '../../api/grant.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { atFirst, called, type TwoNodes, useTwoNodes } from '../testing/fake/two-nodes.ts'

let nodes: TwoNodes
const { start, stop, serving, untilFrozen } = useTwoNodes(given => {
  nodes = given
})

const intervalMs = 3_600_000
const named: Grant = { number: 3, heir: { uid: 'uid-h', node: 'b' }, isRevoked: false }
const granted = (over: Partial<SlotLease> = {}): SlotLease => ({ ...atFirst(), grant: named, ...over })
const wordOf = (node: string) => nodes.cluster.reports.get(node)?.status?.slots[0]?.grant

/** Both agents run, the memory is frozen in the heir, and the grant is known. */
async function settled(over: Partial<SlotLease> = {}) {
  const { cluster, a, b } = nodes
  // Saved once: the heir refuses a grant for ever while newer memory has been in transit for long, as on a slow disk.
  cluster.writePolicy({ intervalMs })
  const agents = { a: await start('a', a), b: await start('b', b) }
  await untilFrozen('one')
  cluster.setLease(granted(over))
  await vi.waitFor(() => expect([wordOf('a'), wordOf('b')]).toEqual([{ closed: 2 }, { closed: 2 }]))
  return agents
}

describe('a grant', () => {
  it('D7.grant: lets the heir run while the API server is away, and the operator records it afterwards', async () => {
    const { cluster, b } = nodes
    const agents = await settled()
    cluster.isAway = true
    agents.a.die('uid-p')
    await vi.waitFor(() => expect(b.running.get('uid-h')).toBe('one'))
    await vi.waitFor(() => expect(wordOf('a')).toEqual({ closed: 3, used: 3 }))
    expect(wordOf('b')).toEqual({ closed: 3, used: 3 })
    cluster.isAway = false
    await vi.waitFor(() => expect(serving('b', 'h')?.status).toBe('True'))
    cluster.setLease({ ...called(), grant: { ...named, isRevoked: true } })
    await vi.waitFor(() => expect(wordOf('b')).toEqual({ closed: 3 }))
    expect(b.counts.thaws).toBe(1)
    expect(b.grants.size).toBe(0)
  })

  it('D7.grant: is used by no agent after it has read that it is revoked', async () => {
    const { cluster, b } = nodes
    const agents = await settled()
    cluster.setLease(granted({ grant: { ...named, isRevoked: true } }))
    await vi.waitFor(() => expect([wordOf('a'), wordOf('b')]).toEqual([{ closed: 3 }, { closed: 3 }]))
    agents.a.die('uid-p')
    await vi.waitFor(() => expect(serving('a', 'p')?.reason).toBe('Died'))
    const ask = cluster.agents.get('b')
    const { namespace, name, incarnation, epoch } = granted()
    const request = { slot: { namespace, name, incarnation }, epoch, number: 3, uid: 'uid-h' }
    expect(await ask?.('a', request)).toBe('Refused')
    expect(b.running.has('uid-h')).toBe(false)
  })

  it('D7.grant: counts for the next agent of the heir, which clears nothing', async () => {
    const { cluster, b } = nodes
    const agents = await settled()
    cluster.isAway = true
    agents.a.die('uid-p')
    await vi.waitFor(() => expect(b.running.get('uid-h')).toBe('one'))
    await stop(agents.b)
    const { discards } = b.counts
    await start('b', b)
    await vi.waitFor(() => expect(wordOf('b')).toEqual({ closed: 3, used: 3 }))
    cluster.isAway = false
    await vi.waitFor(() => expect(serving('b', 'h')?.status).toBe('True'))
    expect(b.running.get('uid-h')).toBe('one')
    expect(b.counts.discards).toBe(discards)
  })

  it('D7.grant: is refused for ever to a request that comes too early for its memory, also by the next agent', async () => {
    const { cluster, a, b } = nodes
    const agents = await settled()
    const { namespace, name, incarnation, epoch } = granted()
    const request = { slot: { namespace, name, incarnation }, epoch, number: 3, uid: 'uid-h' }
    const atLeast = { epoch: 1, generation: 1_000_000, takenAt: Date.now() + 2 * intervalMs }
    expect(await cluster.agents.get('b')?.('a', { ...request, atLeast })).toBe('Refused')
    await vi.waitFor(() => expect(wordOf('b')).toEqual({ closed: 3 }))
    await stop(agents.b)
    await start('b', b)
    await untilFrozen('one')
    expect(await cluster.agents.get('b')?.('a', request)).toBe('Refused')
    expect(a.running.get('uid-p')).toBe('one')
  })

  it('D7.grant: is used by the node of the primary only', async () => {
    const { cluster, b } = nodes
    await settled()
    const { namespace, name, incarnation, epoch } = granted()
    const request = { slot: { namespace, name, incarnation }, epoch, number: 3, uid: 'uid-h' }
    expect(await cluster.agents.get('b')?.('c', request)).toBe('Later')
    expect(await cluster.agents.get('b')?.('a', { ...request, number: 4 })).toBe('Later')
    expect(await cluster.agents.get('b')?.('a', { ...request, uid: 'uid-x' })).toBe('Refused')
    expect(b.running.has('uid-h')).toBe(false)
  })

  it('D7.grant: ends where the agent of the heir certainly did not hear of it', async () => {
    const { b } = nodes
    const agents = await settled()
    await stop(agents.b)
    agents.a.die('uid-p')
    // It is never said to be used: the operator would wait for the heir. Nor is it closed while a message may still leave.
    const said: (number | undefined)[] = []
    await vi.waitFor(() => {
      said.push(wordOf('a')?.used)
      expect(wordOf('a')).toEqual({ closed: 3 })
    })
    expect(said.filter(used => used !== undefined)).toEqual([])
    await start('b', b)
    await untilFrozen('one')
    expect(b.running.has('uid-h')).toBe(false)
  })

  it('D7.grant: says nothing of a primary that this agent has never seen alive', async () => {
    const { cluster, a, b } = nodes
    const agents = await settled()
    await stop(agents.a)
    a.running.delete('uid-p')
    for (const [name, watch] of a.watches) a.watches.set(name, { ...watch, died: true })
    cluster.reports.remove('a')
    await start('a', a)
    await vi.waitFor(() => expect(serving('a', 'p')?.reason).toBe('Died'))
    await vi.waitFor(() => expect(cluster.reports.get('a')?.status?.slots).toHaveLength(1))
    expect(wordOf('a')).toBeUndefined()
    expect(b.running.has('uid-h')).toBe(false)
  })
})

describe('a grant that the heir announces', () => {
  const announced: Grant = { ...named, isAnnounced: true }
  /** The operator ends the grants up to this number on the pod of the heir. */
  const end = (number: number) => {
    const pod = nodes.cluster.pods.get('b')?.get('default/h')
    if (pod === undefined) throw new Error('the heir is gone')
    const annotations = {
      ...pod.metadata.annotations,
      [grantOverAnnotation(granted().incarnation)]: String(number),
    }
    nodes.cluster.put('b', { ...pod, metadata: { ...pod.metadata, annotations } })
  }

  /** The primary dies, and both agents agree, while the API server takes no writes. */
  const agreed = async ({ a }: Awaited<ReturnType<typeof settled>>) => {
    nodes.cluster.takesNoWrites = true
    a.die('uid-p')
    await vi.waitFor(() => expect(wordOf('b')).toEqual({ closed: 3, used: 3 }))
  }

  it('D7.announced: lets the heir run once the API server has its word, and not while that is away', async () => {
    const { cluster, b } = nodes
    const agents = await settled({ grant: announced })
    end(2)
    await agreed(agents)
    await setTimeout(500)
    expect(b.running.has('uid-h')).toBe(false)
    cluster.takesNoWrites = false
    await vi.waitFor(() => expect(b.running.get('uid-h')).toBe('one'))
    await vi.waitFor(() => expect(serving('b', 'h')?.status).toBe('True'))
    expect(b.counts.thaws).toBe(1)
  })

  it('D7.announced: is refused once the operator has ended it on the pod', async () => {
    const { b } = nodes
    const agents = await settled({ grant: announced })
    end(3)
    await vi.waitFor(() => expect(wordOf('b')).toEqual({ closed: 3 }))
    agents.a.die('uid-p')
    await vi.waitFor(() => expect(wordOf('a')).toEqual({ closed: 3 }))
    expect(b.counts.thaws).toBe(0)
  })

  it('D7.announced: gives the pod nothing if the operator ends it after the agents have agreed', async () => {
    const { cluster, b } = nodes
    const agents = await settled({ grant: announced })
    await agreed(agents)
    end(3)
    await vi.waitFor(() => expect(wordOf('b')).toEqual({ closed: 3 }))
    cluster.takesNoWrites = false
    await vi.waitFor(() => expect(serving('a', 'p')?.reason).toBe('Died'))
    expect(b.running.has('uid-h')).toBe(false)
    expect(b.counts.thaws).toBe(0)
  })

  it('D7.announced: that was ended leaves the pod to the operator, which may call it', async () => {
    const { cluster, b } = nodes
    const agents = await settled({ grant: announced })
    end(3)
    agents.a.die('uid-p')
    await vi.waitFor(() => expect(wordOf('b')).toEqual({ closed: 3 }))
    cluster.setLease({ ...called(), grant: { number: 3, isRevoked: false } })
    await vi.waitFor(() => expect(b.running.get('uid-h')).toBe('one'))
    await vi.waitFor(() => expect(serving('b', 'h')?.status).toBe('True'))
  })

  it('D7.announced: counts for the next agent of the heir, too', async () => {
    const { cluster, b } = nodes
    const agents = await settled({ grant: announced })
    await agreed(agents)
    await stop(agents.b)
    await start('b', b)
    await setTimeout(300)
    expect(b.running.has('uid-h')).toBe(false)
    cluster.takesNoWrites = false
    await vi.waitFor(() => expect(b.running.get('uid-h')).toBe('one'))
  })
})
