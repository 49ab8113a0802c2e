import { expect, it } from 'vitest'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import type { SlotAction } from '../decide/actions.ts'
import { makePodObject } from '../testing/objects.ts'
import { makeSlotContext } from '../testing/slot-context.ts'
import { makeCandidate } from '../testing/slots.ts'
import type { SlotContext } from './context.ts'
import { createInFlightPromotions } from './in-flight-promotions.ts'
import { type Brought, type Takeover, takeOver } from './take-over.ts'

const pod = makeCandidate('c', 'coldbackup')
const action: SlotAction = { type: 'wake', pod }
const role = { slot: 0, epoch: 2, replaces: undefined }
const brought: Brought = { type: 'brought', ip: undefined, action }

/** A context in which `steps` names what was done, in order. */
function watched(over: Partial<SlotContext> = {}) {
  const steps: string[] = []
  const step = (name: string) => {
    steps.push(name)
  }
  const context = makeSlotContext({
    urgentApi: fakeApi({
      patch: async () => {
        step('label')
        return makePodObject('c')
      },
      delete: async () => step('delete'),
    }),
    inFlightPromotions: createInFlightPromotions(() => new Promise(() => {})),
    openGate: async () => {
      step('gate')
      return { type: 'opened', openedGate: undefined }
    },
    failedOnStage: (_, why) => step(`failed: ${why}`),
    ...over,
  })
  const takeover = {
    ...{ pod, to: 'primary', role, wake: true },
    swap: async () => step('record'),
    bring: async () => {
      step('state')
      return { ...brought, held: () => step('held') }
    },
  } satisfies Takeover
  return { steps, context, takeover }
}

it('takes over in one order: record, gate, state, label', async () => {
  const { steps, context, takeover } = watched()
  const outcome = await takeOver(context, action, takeover)
  expect(steps).toEqual(['record', 'gate', 'state', 'label', 'held'])
  const phases = { lease: 0, woken: 0, serving: 0, published: 0 }
  expect(outcome).toMatchObject({ type: 'done', phases })
})

it('does nothing after a record that could not be swapped', async () => {
  const { steps, context, takeover } = watched()
  const swap = () => Promise.reject(new Error('another leader was faster'))
  expect(await takeOver(context, action, { ...takeover, swap })).toMatchObject({ type: 'failed' })
  expect(steps).toEqual([])
})

it('deletes a pod whose gate does not answer', async () => {
  const { steps, context, takeover } = watched({ openGate: async () => ({ type: 'failed', why: 'silent' }) })
  expect(await takeOver(context, action, takeover)).toEqual({ type: 'spent', action, why: 'silent' })
  expect(steps).toEqual(['record', 'delete'])
})

it('leaves the label of a pod that did not get the state', async () => {
  const { steps, context, takeover } = watched()
  const bring = async () => ({ type: 'failed', why: 'full' }) as const
  expect(await takeOver(context, action, { ...takeover, bring })).toMatchObject({ type: 'setback' })
  expect(steps).toEqual(['record', 'gate', 'failed: full'])
})

it('waits for a takeover that only writes, however long that takes', async () => {
  const { steps, context, takeover } = watched({
    inFlightPromotions: createInFlightPromotions(async () => {}),
  })
  const { pod, to, role } = takeover
  expect(await takeOver(context, action, { pod, to, role, wake: false })).toMatchObject({ type: 'done' })
  expect(steps).toEqual(['label'])
})
