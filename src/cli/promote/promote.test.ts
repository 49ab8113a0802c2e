import { expect, test } from 'vitest'
import type { SlotStatus } from '../../api/slot-status.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { saveNow } from '../checkpoint/checkpoint.ts'
import { pod, report, set, slotReport } from '../testing/objects.ts'
import { makeSession } from '../testing/session.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import { fakeWorld } from '../testing/world.ts'
import { failOver } from './promote.ts'

/** A primary web-p on n1, a hot backup on n2 that has its memory. */
function scene() {
  const clock = createFakeClock()
  const terminal = recordingTerminal()
  const stop = new AbortController()
  const holding = (generation: number) =>
    report('n2', { slots: [slotReport({ generation, usable: 'Frozen' })] })
  const source = (generation: number, answeredRequest?: string) =>
    report('n1', {
      slots: [slotReport({ role: 'source', generation, ...(answeredRequest && { answeredRequest }) })],
    })
  const world = fakeWorld(
    clock,
    {
      sets: [set()],
      pods: [pod('web-p', 'primary'), pod('web-h', 'hotbackup', { node: 'n2' })],
      reports: [source(14), holding(14)],
    },
    stop.signal,
  )
  const patches: (string | null)[] = []
  const deleted: string[] = []
  const api = fakeApi({
    async patch(_, { name }, { body }) {
      patches.push(...Object.values(body.metadata?.annotations ?? {}))
      return pod(name, 'primary')
    },
    async delete(_, { name }) {
      deleted.push(name)
    },
  })
  const session = makeSession({ api, clock, terminal, signal: stop.signal })
  const [slot] = set().status?.slots ?? []
  if (slot === undefined) throw new Error('the set has a slot')
  const slotIs = (over: Partial<SlotStatus>) =>
    world.change({ sets: [set({ slots: [{ ...slot, ...over }] })] })
  const saved = () => world.change({ reports: [source(15, patches.at(-1) ?? ''), holding(14)] })
  const fetched = () => world.change({ reports: [source(15, patches.at(-1) ?? ''), holding(15)] })
  return { clock, terminal, world, session, slot, patches, deleted, slotIs, saved, fetched }
}

/** Without the times, which are those of this machine. */
const phases = (told: readonly string[]): string[] => told.map(line => line.replace(/ +[\d.]+ s/, ' |'))

test('a handover shows its phases: another pod becomes the primary, and that pod serves', async () => {
  const { terminal, world, session, slot, slotIs, patches, deleted } = scene()
  const done = failOver(session, world, set(), slot, { timeout: 60 })
  await slotIs({ pod: 'web-h', ready: false })
  expect(phases(terminal.told)).toEqual(['ok  slot 0: hand over from web-p |  web-h takes over'])
  await slotIs({ pod: 'web-h', ready: true })
  expect(await done).toMatchObject({ from: 'web-p', to: 'web-h', handedOver: true })
  expect(phases(terminal.told).slice(1)).toEqual(['ok  slot 0: wait until the successor serves |  web-h'])
  expect([patches.length, deleted]).toEqual([1, []])
})

test('a handover that is late shows which phase was, and withdraws the request', async () => {
  const { clock, terminal, world, session, slot, slotIs, patches } = scene()
  const done = failOver(session, world, set(), slot, { timeout: 60 }).catch((error: unknown) => error)
  await clock.untilSleepers(1)
  await clock.advance(40_000)
  await slotIs({ pod: 'web-h', ready: false })
  await clock.advance(19_999)
  expect(terminal.told).toHaveLength(1)
  // Both phases together have the 60 seconds.
  await clock.advance(1)
  expect(await done).toMatchObject({ exitCode: 4 })
  expect(phases(terminal.told).slice(1)).toEqual(['NO  slot 0: wait until the successor serves |'])
  expect(patches).toEqual([expect.any(String), null])
})

test('a deletion shows the save, the wait for a copy, the deletion and the successor', async () => {
  const { terminal, world, session, slot, slotIs, saved, fetched, deleted } = scene()
  const done = failOver(session, world, set(), slot, { timeout: 60, delete: true })
  await saved()
  expect(phases(terminal.told)).toEqual(['ok  slot 0: save web-p |  generation 15'])
  expect(deleted).toEqual([])
  await fetched()
  expect(deleted).toEqual(['web-p'])
  await slotIs({ pod: 'web-h', ready: true })
  // The status tells a moment later how the successor took over.
  const lastFailover = {
    at: '2030-01-01T00:00:00Z',
    from: 'web-p',
    to: 'web-h',
    reason: 'PodDeleted',
    seconds: 0.1,
  }
  await slotIs({ pod: 'web-h', ready: true, lastFailover })
  expect(await done).toMatchObject({ to: 'web-h', handedOver: false, seconds: 0.1 })
  expect(phases(terminal.told).filter(line => line.includes('|'))).toEqual([
    'ok  slot 0: save web-p |  generation 15',
    'ok  slot 0: wait until a pod could resume with it |  n2 (Frozen)',
    'ok  slot 0: delete web-p |  web-h takes over',
    'ok  slot 0: wait until the successor serves |  web-h',
  ])
})

test('a failover that no operator has recorded has no duration', async () => {
  const { clock, world, session, slot, slotIs, saved, fetched } = scene()
  const done = failOver(session, world, set(), slot, { timeout: 60, delete: true })
  await saved()
  await fetched()
  await slotIs({ pod: 'web-h', ready: true })
  await clock.advance(2_000)
  const promoted = await done
  expect(promoted).toMatchObject({ to: 'web-h', handedOver: false })
  expect(promoted.seconds).toBeUndefined()
})

test('a checkpoint without --wait shows the save alone', async () => {
  const { terminal, world, session, slot, saved, patches } = scene()
  const done = saveNow(session, world, set(), slot, { wait: false, timeoutMs: 1_000 })
  await saved()
  expect(await done).toMatchObject({ generation: 15 })
  expect(phases(terminal.told)).toEqual(['ok  slot 0: save web-p |  generation 15'])
  expect(patches).toHaveLength(1)
})

test('a save that fails is marked', async () => {
  const { terminal, world, session, slot } = scene()
  const done = saveNow(session, world, set(), slot, { wait: true, timeoutMs: 1_000 }).catch(
    (error: unknown) => error,
  )
  await world.change({ pods: [] })
  expect(await done).toMatchObject({ message: expect.stringContaining('was lost before it was saved') })
  expect(phases(terminal.told)).toEqual(['NO  slot 0: save web-p |'])
})
