/** Dependencies of the executors, for tests that perform actions. */

import { makeSlotContext } from '../../slot/testing/slot-context.ts'
import type { ActContext } from '../act/context.ts'
import { ownerOf } from '../owner.ts'
import { makeSet } from './snapshots.ts'

const nothing = () => undefined

/** The context of a leader that may write. Calls to the API server, gates and agents fail where a test answers none. */
export const makeContext = ({ set = makeSet(), ...over }: Partial<ActContext> = {}): ActContext => ({
  ...makeSlotContext(),
  set,
  owner: ownerOf(set),
  service: set.service,
  wakeupTimeoutMs: set.wakeupTimeout * 1000,
  settings: { wakerImage: 'waker', wakeKeys: [new Uint8Array(32)] },
  now: () => 0,
  instance: 'operator-1',
  finishedLate: nothing,
  isNamespaceTerminating: async () => false,
  mayWrite: () => true,
  mustYield: () => false,
  ended: nothing,
  ...over,
})
