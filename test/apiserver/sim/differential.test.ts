/**
 * Checks that the simulation's API server answers like the real one to every kind of call that operator, agents and
 * kubelets make.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { namespaces } from '../../../src/kube/resources.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { lists } from './calls.ts'
import { told } from './told.ts'
import { carryOut, modelWorld, type World, within } from './worlds.ts'

let api: Api
beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
})
afterAll(() => api.close())

async function realWorld(): Promise<World> {
  const { metadata } = await api.create(namespaces, { metadata: { generateName: 'alike-' } })
  return { api, namespace: metadata.name, settle: asked => asked }
}

describe.each(lists)('$what', ({ steps, watches }) => {
  it('is answered, and told to those who watch, as by the real one', async () => {
    const [real, model] = [await realWorld(), modelWorld()]
    const answers: Map<string, unknown>[] = []
    const events: Record<string, unknown>[] = []
    for (const world of [model, real]) {
      const heard = await told(world, watches)
      answers.push(await carryOut(world, steps))
      events.push(await heard())
    }
    const [ours, theirs] = answers
    // Compare only fields that the model has: the real server adds defaults to specs, and no test reads them.
    for (const { step } of steps)
      expect({ step, answer: within(theirs?.get(step), ours?.get(step)) }).toEqual({
        step,
        answer: ours?.get(step),
      })
    expect(within(events[1], events[0])).toEqual(events[0])
  })
})
