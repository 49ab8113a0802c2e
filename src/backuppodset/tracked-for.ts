import type { Api } from '../kube/api.ts'
import { pods } from '../kube/resources.ts'
import { type TrackedOptions, tracked } from '../kube/tracked.ts'

/** Returns a client that notes its writes for the set with this key, so that its next pass waits for them. */
export const trackedFor = (consistency: TrackedOptions['consistency'], setKey: string, client: Api): Api =>
  // A pass looks through pending deletions of pods without waiting for the cache.
  tracked(client, { consistency, owner: setKey, untrackedDeletions: [pods] })
