import { expect, test } from 'vitest'
import { annotations } from '../../api/labels.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { KubeError } from '../../kube/errors.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { exitCodes } from '../failure.ts'
import { pod, set } from '../testing/objects.ts'
import { makeSession } from '../testing/session.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import { fakeWorld } from '../testing/world.ts'
import { drill, perform } from './drill.ts'

function scene({ mayReadSlices = true, allowed = 'allowed' } = {}) {
  const clock = createFakeClock()
  const terminal = recordingTerminal()
  const stop = new AbortController()
  const heir = pod('web-h', 'primary', { node: 'n2' })
  const drilled = set()
  const object = {
    ...drilled,
    metadata: { ...drilled.metadata, annotations: { [annotations.drill]: allowed } },
  }
  const state = { leadsTo: 'uid-web-p', deleted: [] as unknown[] }
  const api = fakeApi({
    async get() {
      return object
    },
    async list() {
      if (!mayReadSlices) throw new KubeError('Forbidden', 'no right')
      const slice = {
        metadata: { name: 'web', uid: 's', resourceVersion: '1' },
        endpoints: [{ addresses: ['10.0.0.1'], targetRef: { uid: state.leadsTo } }],
      }
      return { items: [slice], metadata: { resourceVersion: '1' } }
    },
    async delete(_, { name }, query) {
      state.deleted.push([name, query?.uid])
    },
  })
  const session = makeSession({ api, clock, terminal, signal: stop.signal })
  const world = fakeWorld(
    clock,
    { sets: [object], pods: [pod('web-p', 'primary'), heir], reports: [] },
    stop.signal,
  )
  const [slot] = object.status?.slots ?? []
  if (slot === undefined) throw new Error('the set has a slot')
  const succeeds = () =>
    world.change({
      sets: [
        set({
          slots: [{ ...slot, pod: 'web-h', node: 'n2', epoch: 3, ready: true }],
          lastFailover: {
            ...{ slot: 0, from: 'web-p', to: 'web-h', reason: 'Deleted', seconds: 0.2 },
            ...{ at: '2030-01-01T01:00:00Z', how: 'Frozen', stateAge: 0.6 },
          },
        }),
      ],
    })
  return { clock, terminal, session, world, object, slot, state, succeeds }
}

test('a drill deletes exactly the primary, and measures who follows it, how and when', async () => {
  const { clock, session, world, object, slot, state, succeeds } = scene()
  const done = perform(session, world, object, slot, { timeout: 60 })
  await clock.untilSleepers(1)
  expect(state.deleted).toEqual([['web-p', 'uid-web-p']])
  await clock.advance(400)
  state.leadsTo = 'uid-web-h'
  await clock.advance(100)
  await succeeds()
  expect(await done).toEqual({
    ...{ slot: 0, from: 'web-p', to: 'web-h', node: 'n2', epoch: 3 },
    ...{ servedSeconds: 0.5, routedSeconds: 0.5, failoverSeconds: 0.2, how: 'Frozen', stateAge: 0.6 },
  })
})

test('a user who may not read EndpointSlices gets the rest', async () => {
  const { session, world, object, slot, succeeds } = scene({ mayReadSlices: false })
  const done = perform(session, world, object, slot, { timeout: 60 })
  await succeeds()
  expect(await done).not.toHaveProperty('routedSeconds')
  expect(await done).toMatchObject({ to: 'web-h' })
})

test('a set that does not allow drills is left alone', async () => {
  const { session, state } = scene({ allowed: 'no' })
  await expect(drill(session, 'web', { timeout: 60 })).rejects.toMatchObject({
    exitCode: exitCodes.refused,
    advice: expect.stringContaining('backup.example.com/drill=allowed'),
  })
  expect(state.deleted).toEqual([])
})

test('a drill without a successor in time says so', async () => {
  const { clock, session, world, object, slot } = scene()
  const done = perform(session, world, object, slot, { timeout: 60 }).catch((error: unknown) => error)
  await clock.untilSleepers(1)
  await clock.advance(60_000)
  expect(await done).toMatchObject({ exitCode: exitCodes.late })
})
