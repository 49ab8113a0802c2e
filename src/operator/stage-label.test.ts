import { expect, it } from 'vitest'
import type { NodeReport } from '../api/node-report.ts'
import { stageLabel } from '../api/pod-contract.ts'
import { createFakeClock } from '../kube/clock.ts'
import { silentLog } from '../kube/log.ts'
import { createQueue } from '../kube/queue.ts'
import { seededRandom } from '../kube/random.ts'
import type { Node } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { fakeApi } from '../kube/testing/fake-api.ts'
import { makeReport } from '../slot/testing/objects.ts'
import { createStageController } from './stage-label.ts'

let version = 0
const report = (ready: boolean, told?: string): NodeReport => {
  version += 1
  const updatedAt = told ?? new Date(version).toISOString()
  const { metadata, status } = makeReport('n1', { ready, updatedAt })
  return { metadata: { ...metadata, resourceVersion: `${version}` }, status }
}

/** A node with the label that the controller wrote last. */
function scene() {
  const clock = createFakeClock()
  const reports = createStore<NodeReport>()
  const nodes = createStore<Node>()
  const queue = createQueue({ clock, name: 'stage' })
  const written: unknown[] = []
  const api = fakeApi({
    patch: async (_, { name }, { body }) => {
      const value = body.metadata?.labels?.[stageLabel]
      written.push(value)
      version += 1
      const labels = { [stageLabel]: value ?? '' }
      const metadata = { name, uid: 'n', resourceVersion: `${version}`, labels }
      if (value === null) nodes.remove(name)
      else nodes.upsert({ metadata })
      return { metadata }
    },
  })
  const controller = createStageController({
    api,
    reports,
    nodes,
    queue,
    clock,
    random: seededRandom(1),
    log: silentLog,
  })
  return { clock, reports, nodes, written, controller }
}

it('a node is labelled while its agent says that it is ready, and for 30 s after its last word', async () => {
  const { clock, reports, written, controller } = scene()
  const stop = new AbortController()
  const running = controller.run(stop.signal)
  reports.upsert(report(false))
  await clock.advance(1_000)
  expect(written).toEqual([])
  reports.upsert(report(true))
  await clock.advance(1_000)
  expect(written).toEqual(['ready'])
  await clock.advance(28_000)
  reports.upsert(report(true))
  await clock.advance(28_000)
  expect(written).toEqual(['ready'])
  await clock.advance(5_000)
  expect(written).toEqual(['ready', null])
  reports.upsert(report(true))
  await clock.advance(1_000)
  reports.upsert(report(false))
  await clock.advance(1_000)
  expect(written).toEqual(['ready', null, 'ready', null])
  stop.abort(new Error('over'))
  await running
})

it('a report that was there before us counts from its own time', async () => {
  const { clock, reports, written, controller } = scene()
  const stop = new AbortController()
  const running = controller.run(stop.signal)
  const at = (ms: number) => new Date(clock.now() - ms).toISOString()
  reports.replace([report(true, at(40_000))], 1n)
  await clock.advance(1_000)
  expect(written).toEqual([])
  stop.abort(new Error('over'))
  await running
})
