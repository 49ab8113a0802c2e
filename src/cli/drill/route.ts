import type { BackupPodSet } from '../../api/backuppodset.ts'
import { labels } from '../../api/labels.ts'
import { isKubeError } from '../../kube/errors.ts'
import { type EndpointSlice, endpointSlices } from '../../kube/resources.ts'
import type { Session } from '../session.ts'
import type { FollowedWorld } from '../world.ts'

export interface Routing {
  /** Resolves with the time on the monotonic clock, ms; with undefined after `ms` without such a slice. */
  within(ms: number): Promise<number | undefined>
}

interface Watched {
  readonly set: BackupPodSet
  readonly slot: number
  /** Uid of the primary that is deleted. */
  readonly before: string
  readonly until: AbortSignal
}

const pollMs = 100

/** Looks for the time at which an EndpointSlice of the set leads to another pod of the slot. Never rejects. */
export function routeTo(session: Session, world: FollowedWorld, watched: Watched): Routing {
  const { clock } = session
  const { until } = watched
  const found = look(session, world, watched).catch(() => undefined)
  return {
    within: ms =>
      Promise.race([
        found,
        clock.sleep(ms, until).then(
          () => undefined,
          () => undefined,
        ),
      ]),
  }
}

async function look(
  { api, call, clock, namespace, signal }: Session,
  world: FollowedWorld,
  { set, slot, before, until }: Watched,
): Promise<number | undefined> {
  const ended = AbortSignal.any([signal, until])
  const labelSelector = `${labels.set}=${set.metadata.name}`
  for (;;) {
    try {
      const { items } = await api.list(
        endpointSlices,
        { namespace, labelSelector },
        { ...call, signal: ended },
      )
      // Without a Service of the set there is nothing to wait for.
      if (items.length === 0) return undefined
      const successors = new Set(
        world.now.pods
          .filter(
            ({ metadata }) => metadata.labels?.[labels.slot] === String(slot) && metadata.uid !== before,
          )
          .map(({ metadata }) => metadata.uid),
      )
      if (items.some(slice => leadsTo(slice, successors))) return clock.monotonic()
    } catch (error) {
      if (isKubeError(error, 'Forbidden', 'Aborted')) return undefined
    }
    await clock.sleep(pollMs, ended)
  }
}

const leadsTo = ({ endpoints }: EndpointSlice, uids: ReadonlySet<string>): boolean =>
  (endpoints ?? []).some(
    ({ targetRef, conditions }) => uids.has(targetRef?.uid ?? '') && conditions?.ready !== false,
  )
