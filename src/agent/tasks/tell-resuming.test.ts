import { expect, it } from 'vitest'
import { grantOverAnnotation } from '../../api/grant.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { silentLog } from '../../kube/log.ts'
import type { GrantRecord } from '../observe/snapshot.ts'
import { lease, pod } from '../testing/fake/snapshots.ts'
import { tellResuming } from './tell-resuming.ts'

/** Tells that an heir resumes by the announced grant 3. @param over the last grant that has ended on the pod, as the API server has it. */
async function told(over: number | undefined) {
  const [heir, next] = [pod('h'), lease({ epoch: 2 })]
  const reasons: string[] = []
  let isGivenUp = false
  const annotations: Record<string, string> =
    over === undefined ? {} : { [grantOverAnnotation(next.incarnation)]: String(over) }
  const accepted: GrantRecord = {
    ...{ slot: next, epoch: 1, number: 3, role: 'Asked', answer: 'Accepted', at: 0, isAnnounced: true },
    heir: { name: 'h', uid: heir.uid, node: 'b', ip: undefined },
  }
  const work = {
    podOf: () => heir,
    patch: async (_: unknown, { reason }: { readonly reason: string }) => {
      reasons.push(reason)
      return { annotations }
    },
    grants: {
      view: { records: new Map(), alive: new Map() },
      ...{ isAlive: () => {}, sent: () => {}, keepOnly: () => {} },
      ...{ isFresh: () => true, acceptedOf: () => accepted },
      write: async ({ answer }: GrantRecord) => {
        isGivenUp = answer === 'Refused'
      },
    },
    clock: createFakeClock(),
    log: silentLog,
  }
  const answer = await tellResuming(work, heir, next, new AbortController().signal).catch(
    ({ code }: { readonly code: string }) => code,
  )
  return { answer, reasons, isGivenUp }
}

it('D7.announced: a grant counts if the API server knows of no end of it at the write', async () => {
  for (const over of [undefined, 2])
    expect(await told(over)).toEqual({ answer: true, reasons: ['Resuming'], isGivenUp: false })
})

it('D7.announced: a grant that has ended there is given up, and the word is taken back', async () => {
  for (const over of [3, 4])
    expect(await told(over)).toEqual({
      answer: 'NotCalled',
      reasons: ['Resuming', 'OffStage'],
      isGivenUp: true,
    })
})
