import { expect, it } from 'vitest'
import { viewWith } from '../testing/views.ts'
import { createWriter } from './write-status.ts'

it('a field that the new status lacks is removed: a merge would keep it', async () => {
  const bodies: unknown[] = []
  const refuse = () => Promise.reject(new Error('no answer'))
  const writer = createWriter({
    get: refuse,
    patch: (_, __, { body }) => {
      bodies.push(body)
      return refuse()
    },
  })
  const view = viewWith({}, { status: { phase: 'Running', preemptionNodeName: 'n', reason: 'a' } })
  const status = { phase: 'Running', reason: 'b' } as const
  await expect(writer.write(view, status, AbortSignal.timeout(1_000))).rejects.toThrow()
  expect(bodies).toMatchObject([{ status: { ...status, preemptionNodeName: null } }])
})
