import { describe, expect, it } from 'vitest'
import type { BackupPodSet } from '../../api/backuppodset.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { KubeError } from '../../kube/errors.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { exitCodes } from '../failure.ts'
import { condition, now, set } from '../testing/objects.ts'
import { makeSession } from '../testing/session.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import { fakeWorld } from '../testing/world.ts'
import { keptLine, resume, suspend, untilResumed, untilSuspended } from './suspend.ts'

const kept = {
  ...{ slot: 0, pod: 'web-p', since: '2030-01-01T00:57:00Z', generation: 14 },
  ...{ savedAt: '2030-01-01T00:57:00Z', bytes: 3_140_000, keptOn: ['n1', 'n2'] },
}
const asleep = (word: Parameters<typeof condition>, over: object = {}): BackupPodSet =>
  set({ conditions: [condition(...word)], retainedSlots: [kept], ...over }, { suspend: true })

function scene(first: BackupPodSet) {
  const clock = createFakeClock({ now })
  const stop = new AbortController()
  const terminal = recordingTerminal()
  const session = makeSession({ clock, terminal })
  const world = fakeWorld(clock, { sets: [first], pods: [], reports: undefined }, stop.signal)
  return { clock, session, terminal, world }
}

describe('kubectl understudy suspend', () => {
  it('waits until the operator says so of this very spec, and tells what is kept where', async () => {
    const { session, terminal, world } = scene(set())
    const done = untilSuspended(session, world, 'web', 60_000)
    const stale = asleep(['Suspended', 'True', 'Suspended', 'kept'])
    await world.change({ sets: [{ ...stale, metadata: { ...stale.metadata, generation: 2 } }] })
    await world.change({ sets: [asleep(['Suspended', 'False', 'Saving', 'it is being saved'])] })
    expect(terminal.written.join('')).not.toContain('is suspended')
    await world.change({ sets: [asleep(['Suspended', 'True', 'Suspended', 'one slot is kept'])] })
    await done
    const text = terminal.written.join('\n')
    expect(text).toContain('web is suspended: one slot is kept')
    expect(text).toContain('slot 0: generation 14, 3m old, 3.1 MB, on n1, n2')
    expect(text).toContain('kubectl understudy resume web')
  })

  it('says after --timeout why a primary still runs, and that nothing is lost', async () => {
    const { clock, session, world } = scene(asleep(['Suspended', 'False', 'UnsupportedState', 'io_uring']))
    const done = untilSuspended(session, world, 'web', 60_000)
    const failed = expect(done).rejects.toMatchObject({
      ...{ exitCode: exitCodes.late, message: expect.stringContaining('UnsupportedState: io_uring') },
      advice: expect.stringContaining('nothing is lost'),
    })
    await clock.advance(60_000)
    await failed
  })

  it('resume waits until all primaries serve, and tells where', async () => {
    const { session, terminal, world } = scene(set())
    await untilResumed(session, world, 'web', 60_000)
    expect(terminal.written.join('\n')).toMatch(/web runs again\n {2}slot 0: web-p on n1/)
  })

  it('marks nodes that cannot be heard', () => {
    expect(keptLine({ ...kept, unsureOn: ['n2'] }, now)).toContain('on n1, n2 (not heard now: n2)')
    expect(keptLine({ ...kept, keptOn: [] }, now)).toContain('on no node')
  })
})

describe('the spec that it writes', () => {
  const written = async (of: 'migratingpods' | 'backuppodsets', act: typeof suspend, paused = false) => {
    const patched: unknown[] = []
    const api = fakeApi({
      async get({ plural }, { name }) {
        if (plural !== 'backuppodsets' && plural !== of) throw new KubeError('NotFound', name)
        return set({}, { paused })
      },
      async patch({ plural }, { name }, { body }) {
        patched.push([plural, name, body])
        throw new KubeError('Forbidden', 'the end of the test')
      },
    })
    const failure = await act(makeSession({ api }), 'web', { timeout: 1 }).catch((error: unknown) => error)
    return { patched, failure }
  }

  it('is that of the MigratingPod, if it has this name: the operator would undo a change of its set', async () => {
    for (const of of ['migratingpods', 'backuppodsets'] as const) {
      const body = { metadata: { uid: 'uid-web' }, spec: { suspend: true } }
      expect((await written(of, suspend)).patched).toEqual([[of, 'web', body]])
    }
    const back = await written('backuppodsets', resume)
    expect(back.patched).toMatchObject([['backuppodsets', 'web', { spec: { suspend: false } }]])
  })

  it('is not written for a paused set, which would end nothing', async () => {
    const { patched, failure } = await written('backuppodsets', suspend, true)
    expect(patched).toEqual([])
    expect(failure).toMatchObject({ message: expect.stringContaining('paused') })
  })
})
