import type { ParsedSet } from '../../api/parse.ts'
import type { Api } from '../../kube/api.ts'
import type { Clock } from '../../kube/clock.ts'
import { isKubeError } from '../../kube/errors.ts'
import { type Pod, persistentVolumeClaims } from '../../kube/resources.ts'
import { type Claim, type ClaimState, claimsOf } from './claims.ts'

/**
 * Access modes cannot change, but a claim may be recreated under its name: a known claim is read again after this time,
 * ms.
 */
const freshMs = 15_000
/** A missing or unread claim is expected to come: it is read again after this time, ms. */
const awaitedMs = 3_000
/** How long a pass waits for claims of which nothing is known; slots may be waiting for the pass, ms. */
const patienceMs = 1_000
const requestMs = 5_000

/**
 * The claims of one set that keeps memory, read one by one and by name: a watch would need a right on all claims of
 * the cluster, and a copy of them, for the few that matter.
 */
export interface ClaimReader {
  /**
   * Resolves when something is known of each claim, or after a short wait; refreshes old states meanwhile. Never
   * rejects.
   */
  look(set: Wanted, signal: AbortSignal): Promise<void>
  of(set: Wanted): readonly Claim[]
  /** Returns when to read missing or unread claims again, ms; undefined if there are none. */
  againAfterMs(set: Wanted): number | undefined
}

type Wanted = Pick<ParsedSet, 'namespace' | 'template'>

interface Known {
  readonly state: ClaimState
  /** Monotonic ms. */
  readonly at: number
}

export interface ClaimReaderOptions {
  readonly api: Pick<Api, 'get'>
  readonly clock: Clock
  /** Pods that hold slots of the set. */
  readonly primaries: () => readonly Pick<Pod, 'spec'>[]
  /** Called when the state of a claim has changed: the set is to be reconciled. */
  readonly changed: () => void
}

export function createClaimReader({ api, clock, primaries, changed }: ClaimReaderOptions): ClaimReader {
  const claims = new Map<string, Known>()
  /** Requests in progress, by claim. */
  const reading = new Map<string, Promise<void>>()

  const read = (namespace: string, name: string): Promise<void> => {
    const running =
      reading.get(name) ??
      readState(api, { namespace, name })
        .then(state => {
          const before = claims.get(name)?.state
          // A busy API server does not invalidate a known state.
          const next = state.type === 'unread' && before?.type === 'there' ? before : state
          claims.set(name, { state: next, at: clock.monotonic() })
          if (JSON.stringify(before) !== JSON.stringify(next)) changed()
        })
        .finally(() => reading.delete(name))
    reading.set(name, running)
    return running
  }

  const isOld = ({ state, at }: Known) =>
    clock.monotonic() - at >= (state.type === 'there' ? freshMs : awaitedMs)

  const wantedOf = (set: Wanted): readonly Omit<Claim, 'state'>[] => {
    const own = claimsOf(set.template)
    const ofPrimaries = primaries().map(({ spec }) =>
      claimsOf({ spec: { containers: [], volumes: spec?.volumes ?? [] } }),
    )
    if (ofPrimaries.length === 0) return own
    const used = new Map(ofPrimaries.flat().map(claim => [claim.name, claim]))
    const unused = own.filter(({ name }) => !used.has(name)).map(claim => ({ ...claim, unused: true }))
    return [...used.values(), ...unused]
  }

  const of = (set: Wanted): readonly Claim[] =>
    wantedOf(set).map(claim => ({
      ...claim,
      state: claims.get(claim.name)?.state ?? { type: 'unread', why: 'no answer yet' },
    }))

  return {
    async look(set, signal) {
      const names = wantedOf(set).map(({ name }) => name)
      for (const name of claims.keys()) if (!names.includes(name)) claims.delete(name)
      const unknown = names.flatMap(name => {
        const known = claims.get(name)
        if (known !== undefined && !isOld(known)) return []
        const running = read(set.namespace, name)
        return known === undefined ? [running] : []
      })
      if (unknown.length === 0) return
      const over = new AbortController()
      const late = clock.sleep(patienceMs, AbortSignal.any([signal, over.signal])).catch(() => undefined)
      await Promise.race([Promise.all(unknown), late])
      over.abort()
    },
    of,
    againAfterMs: set => (of(set).some(({ state }) => state.type !== 'there') ? awaitedMs : undefined),
  }
}

async function readState(
  api: Pick<Api, 'get'>,
  ref: { readonly namespace: string; readonly name: string },
): Promise<ClaimState> {
  try {
    const { spec } = await api.get(persistentVolumeClaims, ref, { timeoutMs: requestMs })
    return { type: 'there', accessModes: spec?.accessModes ?? [] }
  } catch (error) {
    if (isKubeError(error, 'NotFound')) return { type: 'missing' }
    return { type: 'unread', why: isKubeError(error) ? error.code : String(error) }
  }
}
