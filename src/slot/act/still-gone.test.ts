import { expect, it } from 'vitest'
import type { NodeReportStatus } from '../../api/node-report.ts'
import { KubeError } from '../../kube/errors.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { makeReport, makeSlotReport } from '../testing/objects.ts'
import { makeSlotContext } from '../testing/slot-context.ts'
import { makeHolder, makeLease } from '../testing/slots.ts'
import { requireGone } from './still-gone.ts'

const primary = makeHolder('p', 0, { node: 'n1' })
const lease = makeLease(primary, { incarnation: 'aaaaaaaa', holders: ['n2'], kept: ['n3'] })
const nothing: Partial<NodeReportStatus> = { slotsKnown: true, slots: [] }
const kept: Partial<NodeReportStatus> = { ...nothing, slots: [makeSlotReport({ incarnation: 'aaaaaaaa' })] }

const asked = (reports: Readonly<Record<string, Partial<NodeReportStatus>>>, of = lease) => {
  const urgentApi = fakeApi({
    get: async (_, { name }) => {
      const status = reports[name]
      if (status === undefined) throw new KubeError('NotFound', name, { status: 404 })
      return makeReport(name, status)
    },
  })
  return requireGone(makeSlotContext({ urgentApi }), of)
}

it('D7.gone: a life ends where every node that its Lease names says that it has nothing', async () => {
  await expect(asked({ n1: nothing, n2: nothing, n3: nothing })).resolves.toBeUndefined()
  // No node ever had a copy: a missing report means no memory.
  await expect(asked({}, { ...lease, kept: [] })).resolves.toBeUndefined()
})

it('D7.gone: it does not where a node has said since that it keeps something', async () => {
  for (const node of ['n1', 'n2', 'n3'])
    await expect(asked({ n1: nothing, n2: nothing, n3: nothing, [node]: kept })).rejects.toMatchObject({
      code: 'Conflict',
    })
})

it('D7.gone: it does not where one that kept it is not there any more, or does not know yet', async () => {
  await expect(asked({ n1: nothing, n2: nothing })).rejects.toMatchObject({ code: 'Conflict' })
  // A holder that never had a copy has been waited for.
  await expect(asked({ n1: nothing, n3: nothing })).resolves.toBeUndefined()
  await expect(
    asked({ n1: nothing, n2: nothing, n3: { ...nothing, slotsKnown: false } }),
  ).rejects.toMatchObject({ code: 'Conflict' })
})

it('D7.gone: memory of another life of the slot is none of this one', async () => {
  await expect(
    asked({ n1: kept, n2: nothing, n3: nothing }, { ...lease, incarnation: 'bbbbbbbb' }),
  ).resolves.toBeUndefined()
})
