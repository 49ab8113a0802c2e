import { afterEach, beforeEach, expect, it } from 'vitest'
import { labels } from '../../api/labels.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { silentLog as log } from '../../kube/log.ts'
import type { Pod } from '../../kube/resources.ts'
import { nowhere } from '../decide/slot-facts.ts'
import type { TaskOf } from '../decide/task.ts'
import { createFakeCluster, fakeInquiry } from '../testing/fake/cluster.ts'
import { fakeDriver } from '../testing/fake/driver.ts'
import { createFakeMemory, dispose, type FakeMemory } from '../testing/fake/memory.ts'
import { fakeSentinel } from '../testing/fake/sentinel.ts'
import { lease, pod } from '../testing/fake/snapshots.ts'
import { podOf } from '../testing/fake/two-nodes.ts'
import { redirect } from './redirect.ts'

const heirIp = '10.0.0.2'
const heir = { name: 'h', uid: 'uid-h', ip: heirIp }
const dead = 'uid-p/app/c0ffee'

let memory: FakeMemory
let over: AbortController
beforeEach(async () => {
  memory = await createFakeMemory()
  over = new AbortController()
})
afterEach(() => dispose(memory))

/** Pod `p` of slot `web-0` has died, and its connections lead to `before`. Nothing has taken its slot yet. */
function stand(before: string, there: Pod | undefined) {
  memory.watches.set(dead, {
    ...{ process: { pid: 1, start: 1 }, heir: before, isClosed: true, died: true },
  })
  const cluster = createFakeCluster(['a', 'b'])
  if (there !== undefined) cluster.put('b', there)
  const clock = createFakeClock()
  const work = {
    ...{ sentinel: fakeSentinel(memory), driver: fakeDriver(memory), inquiry: fakeInquiry(cluster, 'a') },
    ...{ clock, log },
  }
  const task: TaskOf<'redirect'> = {
    ...{ type: 'redirect', key: '', version: '', pod: pod('p'), lease: lease({ heir }) },
    ...{ to: heirIp, isAwaited: true },
  }
  const done = redirect(work, task, over.signal).catch(error => {
    if (!over.signal.aborted) throw error
  })
  const end = async () => {
    over.abort(new Error('over'))
    await done
  }
  return { cluster, clock, end, target: () => memory.watches.get(dead)?.heir }
}

const understudy = podOf('h', 'hotbackup')

/** The understudy, once it has got this slot. */
const having = (slot: string, type: string): Pod => ({
  ...understudy,
  metadata: {
    ...understudy.metadata,
    labels: { ...understudy.metadata.labels, [labels.type]: type, [labels.slot]: slot },
  },
})

it.each([
  ['that waits gets', understudy, heirIp],
  ['that has got this slot a moment ago gets', having('0', 'primary'), heirIp],
  [
    'that has had another slot, which leads on to the successor there, gets no',
    having('1', 'primary'),
    nowhere,
  ],
  ['that was retired from another slot gets no', having('1', 'retired'), nowhere],
  ['that is gone, whose address another pod may have, gets no', undefined, nowhere],
])('an heir %s connections of a dead primary', async (_, there, to) => {
  const { clock, end, target } = stand(to === nowhere ? heirIp : nowhere, there)
  await clock.advance(0)
  expect(target()).toBe(to)
  await end()
})

it('connections go to no heir before the API server has answered what has become of it', async () => {
  const { cluster, clock, end, target } = stand(nowhere, understudy)
  cluster.isAway = true
  await clock.advance(5_000)
  expect(target()).toBe(nowhere)
  cluster.isAway = false
  await clock.advance(1_000)
  expect(target()).toBe(heirIp)
  await end()
})

it('an heir that is deleted while the slot waits gets no more connections', async () => {
  const { cluster, clock, end, target } = stand(heirIp, understudy)
  await clock.advance(0)
  expect(target()).toBe(heirIp)
  cluster.pods.get('b')?.remove('default/h')
  await clock.advance(20_000)
  expect(target()).toBe(nowhere)
  await end()
})
