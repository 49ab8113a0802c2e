import { describe, expect, test } from 'vitest'
import { createFakeClock } from './clock.ts'
import { createController } from './controller.ts'
import { KubeError } from './errors.ts'
import { silentLog } from './log.ts'
import { createMetrics } from './metrics.ts'
import { createQueue } from './queue.ts'
import { seededRandom } from './random.ts'

/** The samples of a scrape, without help and types. */
const samples = async (metrics: ReturnType<typeof createMetrics>) =>
  new Map(
    (await metrics.registry.metrics())
      .split('\n')
      .filter(line => line !== '' && !line.startsWith('#'))
      .map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )

describe('metrics', () => {
  test('a queue and its controller show every series as 0 before anything happens', async () => {
    const metrics = createMetrics({ process: false })
    const clock = createFakeClock()
    const queue = createQueue({ clock, name: 'sets', metrics: metrics.queue })
    createController({
      name: 'sets',
      queue,
      reconcile: async () => {},
      workers: 4,
      log: silentLog,
      clock,
      random: seededRandom(1),
      metrics: metrics.controller,
    })
    const seen = await samples(metrics)
    const queueLabels = 'name="sets",controller="sets"'
    for (const zero of [
      'controller_runtime_reconcile_total{controller="sets",result="success"}',
      'controller_runtime_reconcile_total{controller="sets",result="requeue_after"}',
      'controller_runtime_reconcile_total{controller="sets",result="error"}',
      'controller_runtime_reconcile_errors_total{controller="sets"}',
      'controller_runtime_terminal_reconcile_errors_total{controller="sets"}',
      'controller_runtime_reconcile_panics_total{controller="sets"}',
      'controller_runtime_reconcile_timeouts_total{controller="sets"}',
      'controller_runtime_reconcile_time_seconds_count{controller="sets"}',
      'controller_runtime_active_workers{controller="sets"}',
      `workqueue_depth{${queueLabels},priority="0"}`,
      `workqueue_adds_total{${queueLabels}}`,
      `workqueue_retries_total{${queueLabels}}`,
      `workqueue_queue_duration_seconds_count{${queueLabels}}`,
      `workqueue_work_duration_seconds_count{${queueLabels}}`,
      `workqueue_unfinished_work_seconds{${queueLabels}}`,
      `workqueue_longest_running_processor_seconds{${queueLabels}}`,
    ])
      expect([zero, seen.get(zero)]).toEqual([zero, 0])
    expect(seen.get('controller_runtime_max_concurrent_reconciles{controller="sets"}')).toBe(4)
  })

  test('and then what happens', async () => {
    const metrics = createMetrics({ process: false })
    const clock = createFakeClock()
    const queue = createQueue({ clock, name: 'sets', metrics: metrics.queue })
    const hung = Promise.withResolvers<void>()
    const controller = createController({
      name: 'sets',
      queue,
      reconcile: async key => {
        if (key === 'bug') throw new TypeError('bug')
        if (key === 'down') throw new KubeError('Unavailable', 'down')
        if (key === 'hung') await hung.promise
      },
      workers: 2,
      log: silentLog,
      clock,
      random: seededRandom(1),
      metrics: metrics.controller,
    })
    const stop = new AbortController()
    for (const key of ['fine', 'bug', 'down', 'hung']) queue.add(key)
    const run = controller.run(stop.signal)
    await clock.advance(2)
    stop.abort()
    await clock.advance(1998)
    queue.add('later', { priority: -100 })
    const seen = await samples(metrics)
    expect(seen.get('controller_runtime_reconcile_total{controller="sets",result="success"}')).toBe(1)
    expect(seen.get('controller_runtime_reconcile_total{controller="sets",result="error"}')).toBe(2)
    expect(seen.get('controller_runtime_reconcile_panics_total{controller="sets"}')).toBe(1)
    expect(seen.get('controller_runtime_active_workers{controller="sets"}')).toBe(1)
    expect(seen.get('workqueue_retries_total{name="sets",controller="sets"}')).toBe(2)
    expect(seen.get('workqueue_depth{name="sets",controller="sets",priority="0"}')).toBe(2)
    expect(seen.get('workqueue_depth{name="sets",controller="sets",priority="-100"}')).toBe(1)
    expect(seen.get('workqueue_longest_running_processor_seconds{name="sets",controller="sets"}')).toBe(2)
    hung.resolve()
    await run
    const after = await samples(metrics)
    expect(after.get('workqueue_unfinished_work_seconds{name="sets",controller="sets"}')).toBe(0)
    expect(after.get('workqueue_work_duration_seconds_bucket{le="1",name="sets",controller="sets"}')).toBe(3)
    expect(after.get('workqueue_work_duration_seconds_count{name="sets",controller="sets"}')).toBe(4)
  })

  test('requests, reflectors, election, events and caches', async () => {
    const metrics = createMetrics({ process: false })
    const request = {
      verb: 'get',
      method: 'GET',
      host: 'h:443',
      resource: 'pods',
      code: '200',
      seconds: 0.02,
    }
    metrics.api.request?.(request)
    metrics.api.request?.({ ...request, code: '<error>' })
    metrics.api.retry?.({ verb: 'get', resource: 'pods', code: '429' })
    metrics.reflector.gauges?.('pods', () => ({
      lastEventAgeSeconds: 3,
      objects: 7,
      resourceVersion: 123n,
      synced: true,
    }))
    metrics.reflector.event?.('pods', 'ADDED')
    metrics.election.leading?.('operator', true)
    metrics.recorder.gauges?.(() => ({ pending: 5 }))
    metrics.recorder.event?.('created')
    metrics.consistency.expired?.('pods')
    expect(Object.fromEntries(await samples(metrics))).toMatchObject({
      'rest_client_requests_total{code="200",method="GET",host="h:443"}': 1,
      'rest_client_requests_total{code="<error>",method="GET",host="h:443"}': 1,
      'rest_client_request_duration_seconds_count{verb="get",host="h:443"}': 2,
      'rest_client_request_retries_total{code="429",verb="get"}': 1,
      'reflector_lists_total{resource="pods"}': 0,
      'reflector_watch_events_total{resource="pods",type="ADDED"}': 1,
      'reflector_last_event_age_seconds{resource="pods"}': 3,
      'reflector_store_objects{resource="pods"}': 7,
      'reflector_store_resource_version{resource="pods"}': 123,
      'reflector_synced{resource="pods"}': 1,
      'leader_election_master_status{name="operator"}': 1,
      event_recorder_pending: 5,
      'event_recorder_events_total{result="created"}': 1,
      'consistency_expired_total{resource="pods"}': 1,
    })
  })

  test('each call has a registry of its own, with the metrics of the process', async () => {
    const [one, two] = [createMetrics(), createMetrics()]
    one.election.leading?.('operator', true)
    expect((await samples(two)).has('leader_election_master_status{name="operator"}')).toBe(false)
    expect((await samples(two)).get('process_resident_memory_bytes')).toBeGreaterThan(0)
    expect(() => createMetrics({ registry: one.registry })).toThrow()
  })
})
