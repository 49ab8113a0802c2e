import { expect, it } from 'vitest'
import type { NodeReport, NodeReportStatus } from '../../api/node-report.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { KubeError } from '../../kube/errors.ts'
import type { ActContext } from './context.ts'
import { requireGone } from './still-gone.ts'

const key = { namespace: 'default', set: 'web', slot: 0, life: 'aaaaaaaa' }
const lease = { ...key, epoch: 1, node: 'n1', holders: ['n2'], kept: ['n3'] } as unknown as SlotLease
const nothing = { slotsKnown: true, slots: [] }
const kept = { ...nothing, slots: [{ ...key, role: 'holder', generation: 1 }] }

const asked = (reports: Readonly<Record<string, object>>, of = lease) => {
  const get = async (_: unknown, { name }: { readonly name: string }): Promise<NodeReport> => {
    const status = reports[name]
    if (status === undefined) throw new KubeError('NotFound', name, { status: 404 })
    return { metadata: { name }, status: status as NodeReportStatus } as unknown as NodeReport
  }
  const context = { urgentApi: { get }, signal: new AbortController().signal } as unknown as ActContext
  return requireGone(context, of)
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
    asked({ n1: kept, n2: nothing, n3: nothing }, { ...lease, life: 'bbbbbbbb' }),
  ).resolves.toBeUndefined()
})
