import { expect, it } from 'vitest'
import type { SlotReport } from '../../api/node-report.ts'
import { KubeError } from '../../kube/errors.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { makeReport, makeSlotReport } from '../testing/objects.ts'
import { makeSlotContext } from '../testing/slot-context.ts'
import { makeHolder, makeLease } from '../testing/slots.ts'
import { requireStanding } from './still-standing.ts'

const lease = makeLease(makeHolder('p', 0, { node: 'n1' }), {
  ...{ incarnation: 'aaaaaaaa', holders: ['n2'], handover: 'uid-h', handovers: 2 },
})
const stands: Partial<SlotReport> = { final: true, standsForSeconds: 13, standsForHandover: 2 }

const asked = (said: Partial<SlotReport> | undefined, now = 11_999) => {
  const urgentApi = fakeApi({
    get: async (_, { name }) => {
      if (said === undefined) throw new KubeError('NotFound', name, { status: 404 })
      const slot = makeSlotReport({ incarnation: 'aaaaaaaa', role: 'source', generation: 3, ...said })
      return makeReport(name, { slots: [slot] })
    },
  })
  return requireStanding(makeSlotContext({ urgentApi, monotonic: () => now }), { lease, until: 12_000 })
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
    { ...stands, incarnation: 'bbbbbbbb' },
  ])
    await expect(asked(said)).rejects.toMatchObject({ code: 'Conflict' })
})

it('D7.consent: nor by an operator that was suspended until its primary may run again', async () => {
  await expect(asked(stands, 12_000)).rejects.toMatchObject({ code: 'Conflict' })
})
