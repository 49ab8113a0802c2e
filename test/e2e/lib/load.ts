/** A client that counts during an upgrade, and what an upgrade must not restart. */
import { counter } from '../../../zoo/slots.ts'
import type { TestSet } from './world.ts'

/** Identities of the containers that run in each pod, by pod. */
export const containersOf = async (set: TestSet): Promise<ReadonlyMap<string, string>> =>
  new Map(
    (await set.pods()).map(({ metadata, status }) => [
      metadata.uid,
      (status?.containerStatuses ?? []).map(({ containerID }) => containerID).join(),
    ]),
  )

/** Adds to a counter until it is stopped. A number that does not follow its predecessor is a failure. */
export function startLoad(address: string) {
  const failures: string[] = []
  let last = 0
  let isOver = false
  const client = (async () => {
    last = await counter.read(address)
    while (!isOver) {
      try {
        await counter.add(address)
        const now = await counter.read(address)
        if (now !== last + 1) failures.push(`${now} after ${last}`)
        last = now
      } catch (error) {
        failures.push(String(error))
      }
      await new Promise(resolve => setTimeout(resolve, 10))
    }
    return { last, failures }
  })()
  return {
    stop: () => {
      isOver = true
      return client
    },
  }
}
