import { expect, it } from 'vitest'
import type { NodeReport, SlotReport } from '../../api/node-report.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { KubeError } from '../../kube/errors.ts'
import type { ActContext } from './context.ts'
import { requireStanding } from './still-standing.ts'

const key = { namespace: 'default', set: 'web', slot: 0, life: 'aaaaaaaa' }
const lease = {
  ...{ ...key, epoch: 1, node: 'n1', holders: ['n2'] },
  ...{ holder: { name: 'p', uid: 'uid-p' }, handover: 'uid-h', handovers: 2 },
} as unknown as SlotLease
const stands: Partial<SlotReport> = { final: true, standsForSeconds: 13, standsForHandover: 2 }

const asked = (said: Partial<SlotReport> | undefined, now = 11_999) => {
  const get = async (): Promise<NodeReport> => {
    if (said === undefined) throw new KubeError('NotFound', 'n1', { status: 404 })
    const slots = [{ ...key, role: 'source', generation: 3, ...said }]
    return { metadata: { name: 'n1' }, status: { slots } } as unknown as NodeReport
  }
  return requireStanding(
    {
      urgentApi: { get } as unknown as ActContext['urgentApi'],
      monotonic: () => now,
      signal: new AbortController().signal,
    },
    { lease, until: 12_000 },
  )
}

it('D7.consent: a slot is handed over while its node says that the primary stands still for this handover', async () => {
  await expect(asked(stands)).resolves.toBeUndefined()
  // Agents of an earlier version do not report for which handover it is.
  const { standsForHandover: _, ...earlier } = stands
  await expect(asked(earlier)).resolves.toBeUndefined()
})

it('D7.consent: it is not where the node has taken that back, speaks of an earlier one, or says nothing', async () => {
  const { standsForSeconds: _, ...over } = stands
  const { final: __, ...goesOn } = stands
  for (const said of [
    undefined,
    over,
    goesOn,
    { ...stands, standsForHandover: 1 },
    { ...stands, role: 'holder' as const },
    { ...stands, life: 'bbbbbbbb' },
  ])
    await expect(asked(said)).rejects.toMatchObject({ code: 'Conflict' })
})

it('D7.consent: nor by an operator that was suspended until its primary may run again', async () => {
  await expect(asked(stands, 12_000)).rejects.toMatchObject({ code: 'Conflict' })
})
