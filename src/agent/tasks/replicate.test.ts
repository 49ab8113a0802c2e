import { describe, expect, it } from 'vitest'
import type { SlotReport } from '../../api/node-report.ts'
import { unlessAborted } from '../../kube/abort.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { silentLog } from '../../kube/log.ts'
import { desiredTasks } from '../decide/desired-tasks.ts'
import type { TaskOf } from '../decide/task.ts'
import { kept, lease, nameOf, peer, snapshot, stored } from '../testing/fake/snapshots.ts'
import { type FetchContext, fetchNewest } from './fetch.ts'
import { replicate } from './replicate.ts'

const held = lease({ node: 'b', holders: ['a', 'c'] })

const saying = (name: string, said: Partial<SlotReport>, slotsKnown = true) => {
  const { namespace, name: slot, incarnation } = held
  const report = {
    ...{ namespace, name: slot, incarnation },
    ...{ role: 'holder', epoch: 1, generation: 0 },
    ...said,
  }
  return [name, peer(name, { slotsKnown, slots: [report as SlotReport] })] as const
}

/** The task of node `a`, which keeps generation 2 of a slot with its primary on `b`, now or before. */
function taskWhere(...reports: readonly ReturnType<typeof saying>[]): TaskOf<'replicate'> {
  const world = snapshot({
    slots: [held],
    reports: new Map(reports),
    kept: new Map([[nameOf(), kept({ generation: 2 })]]),
  })
  const task = desiredTasks(world).find(({ type }) => type === 'replicate')
  if (task?.type !== 'replicate') throw new Error('it does not hold')
  return task
}

describe('a holder', () => {
  const unused = {
    progress: { succeeded: () => undefined },
    metrics: { received: () => undefined },
    announce: () => undefined,
  }
  const another = saying('c', { generation: 4 })

  it.each([
    ['the source has nothing any more', true, [saying('b', { role: 'source' }), another]],
    [
      'the source has brought back older memory, and nobody is on stage there',
      true,
      [saying('b', { role: 'source', generation: 3, usable: 'Cold' }), another],
    ],
    // Reports are late: the source has more by now.
    [
      'the source has a primary, and is said to have less',
      false,
      [saying('b', { role: 'source', generation: 3 }), another],
    ],
    [
      'the source has as much',
      false,
      [saying('b', { role: 'source', generation: 4, usable: 'Cold' }), another],
    ],
    ['the source has not said yet what it keeps', false, [saying('b', { role: 'source' }, false), another]],
    [
      'nobody has more than is here',
      false,
      [saying('b', { role: 'source' }), saying('c', { generation: 2 })],
    ],
  ])('D7.behind: where %s, another holder has what is missed: %j', (_, misses, reports) => {
    const task = taskWhere(...reports)
    expect(task.missed?.address).toBe(misses ? 'c:9443' : undefined)
    // A pull that waits at the source is interrupted.
    const waits = taskWhere(saying('b', { role: 'source', generation: 5 }), another)
    expect(task.version === waits.version).toBe(!misses)
  })

  it('D7.behind: does not wait for another holder that has nothing of what it has said', async () => {
    const clock = createFakeClock()
    const work = {
      store: { list: () => [], prune: async () => undefined },
      ...unused,
      peers: {
        pull: (_slot, _peer, _epoch, signal) => unlessAborted(new Promise<never>(() => undefined), signal),
      } satisfies FetchContext['peers'],
      ...{ clock, log: silentLog },
    }
    const task = taskWhere(saying('b', { role: 'source' }), another)
    const ended = replicate(work, task, new AbortController().signal, () => undefined)
    const refused = expect(ended).rejects.toMatchObject({ code: 'PeerSilent' })
    await clock.advance(5_000)
    await refused
  })

  it('makes room first: a former primary may keep more than a holder', async () => {
    const task = { ...taskWhere(saying('b', { role: 'source', generation: 5 }), another), missed: undefined }
    const done: string[] = []
    const work = {
      store: {
        list: () =>
          [5, 4, 3].map(generation => {
            const one = stored({ generation })
            return { ...one, manifest: { ...one.manifest, slot: task.lease } }
          }),
        prune: async (_: unknown, keep: number) => void done.push(`keeps ${keep}`),
      },
      ...unused,
      peers: {
        pull: async () => {
          done.push('pulls')
          throw new Error('enough')
        },
      } satisfies FetchContext['peers'],
      ...{ clock: createFakeClock(), log: silentLog },
    }
    await expect(replicate(work, task, new AbortController().signal, () => undefined)).rejects.toThrow(
      'enough',
    )
    expect(done).toEqual([`keeps ${task.policy.keep}`, 'pulls'])
  })

  it('D7.behind: a generation that has begun to arrive may take any time', async () => {
    const clock = createFakeClock()
    const work = {
      store: { list: () => [], prune: async () => undefined },
      peers: {
        pull: async (_slot, _peer, _epoch, signal, options) => {
          options?.onAnswer?.()
          await clock.sleep(60_000, signal)
          return stored({ generation: 4 })
        },
      } satisfies FetchContext['peers'],
      metrics: { received: () => undefined },
      announce: () => undefined,
      ...{ clock, log: silentLog },
    }
    const { lease, others } = taskWhere(saying('b', { role: 'source' }), another)
    const fetched = fetchNewest(work, lease, others, new AbortController().signal)
    await clock.advance(60_000)
    expect((await fetched)?.manifest.generation).toBe(4)
  })

  it('D7.behind: fetches what it misses, has no trouble any more, and waits at the source again', async () => {
    const over = new AbortController()
    const asked: string[] = []
    const well: string[] = []
    const work = {
      store: { list: () => [], prune: async () => undefined },
      peers: {
        pull: async (_slot, { address }, _epoch, signal) => {
          asked.push(address)
          if (address === 'b:9443') return unlessAborted(new Promise<never>(() => undefined), signal)
          return stored({ generation: 4 })
        },
      } satisfies FetchContext['peers'],
      progress: { succeeded: (slot: string) => void well.push(slot) },
      metrics: { received: () => undefined },
      announce: () => undefined,
      clock: createFakeClock(),
      log: silentLog,
    }
    const task = taskWhere(saying('b', { role: 'source' }), another)
    const ended = replicate(work, task, over.signal, () => undefined)
    await new Promise(resolve => setImmediate(resolve))
    expect(asked).toEqual(['c:9443', 'b:9443'])
    expect(well).toEqual([nameOf()])
    over.abort(new Error('over'))
    await expect(ended).rejects.toThrow('over')
  })

  it('reports no success once the slot has its primary on this node, whose own task has reported why nothing is saved', async () => {
    const over = new AbortController()
    const well: string[] = []
    const work = {
      store: { list: () => [], prune: async () => undefined },
      peers: {
        pull: async () => {
          over.abort(new Error('over'))
          return stored({ generation: 3 })
        },
      } satisfies FetchContext['peers'],
      ...unused,
      progress: { succeeded: (slot: string) => void well.push(slot) },
      clock: createFakeClock(),
      log: silentLog,
    }
    const task = taskWhere(saying('b', { role: 'source', generation: 5 }))
    await expect(replicate(work, task, over.signal, () => undefined)).rejects.toThrow('over')
    expect(well).toEqual([])
  })
})
