import type { NodeReportStatus } from '../../api/node-report.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { KubeError } from '../../kube/errors.ts'
import { silentLog } from '../../kube/log.ts'
import { fakeApi, makeObject } from '../../kube/testing/fake-api.ts'
import type { ReportContent } from '../report/content.ts'
import { createReportWriter, type ReportWriterOptions } from '../report/report.ts'

/** A slot that the node keeps as a holder. */
export const slot = { namespace: 'default', name: 'web-0', incarnation: '0123abcd', role: 'holder' } as const
export const content = (generation: number, usable?: 'Frozen' | 'Staged'): ReportContent => ({
  version: '1',
  address: 'a:1',
  fingerprint: 'f',
  kernel: '6',
  criu: '4',
  architecture: 'x86_64',
  checks: [],
  ready: true,
  slots: [{ ...slot, generation, ...(usable === undefined ? {} : { usable }) }],
})

/** Runs the writer of a report against an API server that may have a report of the node already. */
export function stand(exists = false, hasStatus = true, more: Pick<ReportWriterOptions, 'giveWay'> = {}) {
  const clock = createFakeClock()
  const writes: NodeReportStatus[] = []
  const api = fakeApi({
    patch: async (_, __, { body }) => {
      if (!exists) throw new KubeError('NotFound', 'no report')
      const status = body.status as NodeReportStatus
      // A merge patch keeps a field that it does not name, if the field existed.
      if (!hasStatus && !('slots' in status)) throw new KubeError('Invalid', 'slots: Required value')
      writes.push(status)
      return makeObject(body)
    },
    create: async (_, body) => {
      exists = true
      return makeObject(body)
    },
  })
  const writer = createReportWriter({ api, node: 'a', clock, log: silentLog, ...more })
  const stop = new AbortController()
  const running = writer.run(stop.signal)
  const end = async () => {
    stop.abort(new Error('over'))
    await running
  }
  return { clock, writer, end, generations: () => writes.map(({ slots }) => slots[0]?.generation), writes }
}
