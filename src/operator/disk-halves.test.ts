import { expect, it } from 'vitest'
import { deriveDiskHalf, diskHalfAnnotation, diskKeyOf } from '../api/disk-half.ts'
import type { NodeReport } from '../api/node-report.ts'
import { createFakeClock } from '../kube/clock.ts'
import { silentLog as log } from '../kube/log.ts'
import { createQueue } from '../kube/queue.ts'
import { seededRandom } from '../kube/random.ts'
import { createStore } from '../kube/store.ts'
import { fakeApi } from '../kube/testing/fake-api.ts'
import type { WakeKeys } from '../slot/gate/token.ts'
import { makeReport } from '../slot/testing/objects.ts'
import { createDiskHalves } from './disk-halves.ts'

let version = 0

/** The reports of a cluster, as the API server has them. */
function cluster() {
  const clock = createFakeClock()
  const reports = createStore<NodeReport>()
  const written: string[] = []
  const put = (node: string, diskKey: string | undefined, annotations: Record<string, string> = {}) => {
    version += 1
    const { metadata, status } = makeReport(node, diskKey === undefined ? {} : { diskKey })
    const report = { metadata: { ...metadata, resourceVersion: `${version}`, annotations }, status }
    reports.upsert(report)
    return report
  }
  const api = fakeApi({
    patch: async (_, { name }, { body }) => {
      written.push(name)
      return put(name, reports.get(name)?.status?.diskKey, body.metadata?.annotations)
    },
  })
  const start = (wakeKeys: WakeKeys) => {
    const stop = new AbortController()
    const controller = createDiskHalves({
      ...{ api, reports, wakeKeys, clock, log },
      queue: createQueue({ clock, name: 'disk-half' }),
      random: seededRandom(1),
    })
    const running = controller.run(stop.signal)
    return async () => {
      stop.abort(new Error('over'))
      await running
    }
  }
  const textOf = (node: string) => reports.get(node)?.metadata.annotations?.[diskHalfAnnotation]
  /** Real time for the encryption, beside that of the fake clock. */
  const settle = async () => {
    for (let i = 0; i < 20; i += 1) {
      await clock.advance(1_000)
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  }
  return { put, start, textOf, written, settle }
}

const operatorKey = Buffer.alloc(32, 7)
const halves = (...keys: readonly Uint8Array[]) => keys.map(key => new Uint8Array(deriveDiskHalf(key, 'n1')))

it('D10.disk-half: each node with a key gets its half once, again after a boot, a removal and another key of the operator', async () => {
  const { put, start, textOf, written, settle } = cluster()
  const end = start([operatorKey])
  const key = await diskKeyOf(Buffer.alloc(32, 1))
  put('n1', key.publicKey)
  put('n2', undefined)
  put('n3', 'A'.repeat(43))
  await settle()
  expect(written).toEqual(['n1'])
  expect(await key.open(textOf('n1') ?? '', 'n1')).toEqual(halves(operatorKey))
  // A new boot.
  const next = await diskKeyOf(Buffer.alloc(32, 2))
  put('n1', next.publicKey, { [diskHalfAnnotation]: textOf('n1') ?? '' })
  await settle()
  expect(await next.open(textOf('n1') ?? '', 'n1')).toEqual(halves(operatorKey))
  put('n1', next.publicKey)
  await settle()
  expect(written).toEqual(['n1', 'n1', 'n1'])
  await end()
  const other = Buffer.alloc(32, 8)
  const endOther = start([other, operatorKey])
  put('n1', next.publicKey, { [diskHalfAnnotation]: textOf('n1') ?? '' })
  await settle()
  expect(await next.open(textOf('n1') ?? '', 'n1')).toEqual(halves(other, operatorKey))
  await endOther()
})
