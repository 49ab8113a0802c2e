/**
 * The Lease of an election as one candidate knows it. docs/adr/0032-leader-election.md explains why no process compares
 * its clock with another one's.
 */
import type { Api } from './api-types.ts'
import type { Clock } from './clock.ts'
import { isKubeError } from './errors.ts'
import type { Log } from './log.ts'
import { microTime } from './micro-time.ts'
import { apiVersionOf, type Lease, leases } from './resources.ts'

export interface LeaseRecordOptions {
  readonly api: Pick<Api, 'get' | 'create' | 'replace'>
  readonly namespace: string
  /** Name of the Lease. */
  readonly name: string
  /** This process. */
  readonly identity: string
  readonly leaseDurationMs: number
  /** For each request, in milliseconds. */
  readonly timeoutMs: number
  readonly clock: Clock
  readonly log: Log
}

/** A candidate's conclusion from the record it knows. */
export type Verdict =
  | { readonly type: 'absent' | 'ours' | 'free' | 'expired' }
  | { readonly type: 'held'; readonly by: string; readonly forMs: number }

interface Observation {
  readonly lease: Lease
  /** Monotonic milliseconds at which this very record was first seen. */
  readonly since: number
}

export interface LeaseRecord {
  /** The Lease that was last read or written. */
  lease(): Lease | undefined
  /** The holder last seen. */
  holder(): string | undefined
  read(signal?: AbortSignal): Promise<void>
  verdict(): Verdict
  /**
   * Writes a record on top of the observed one; an empty holder releases the lease.
   * @returns the monotonic time at which the request was sent.
   */
  write(holder: string, signal?: AbortSignal): Promise<number>
}

export function createLeaseRecord(options: LeaseRecordOptions): LeaseRecord {
  const { api, namespace, name, identity, leaseDurationMs, timeoutMs, clock, log } = options
  const ref = { namespace, name }
  let observed: Observation | undefined
  let lastStamp = ''

  const holderOf = (lease: Lease | undefined) => lease?.spec?.holderIdentity || undefined

  const observe = (lease: Lease | undefined) => {
    const holder = holderOf(lease)
    if (holder !== holderOf(observed?.lease))
      log.info({ lease: name, leader: holder }, holder ? 'leader seen' : 'no leader')
    if (!lease) observed = undefined
    else if (observed && sameRecord(observed.lease, lease)) observed = { lease, since: observed.since }
    else observed = { lease, since: clock.monotonic() }
  }

  const read = async (signal?: AbortSignal) => {
    try {
      observe(await api.get(leases, ref, { timeoutMs, signal }))
    } catch (error) {
      if (!isKubeError(error, 'NotFound')) throw error
      observe(undefined)
    }
  }

  const verdict = (): Verdict => {
    if (!observed) return { type: 'absent' }
    const { holderIdentity: by, leaseDurationSeconds } = observed.lease.spec ?? {}
    if (!by) return { type: 'free' }
    if (by === identity) return { type: 'ours' }
    // The duration in the holder's record counts, not this process's own setting.
    const durationMs = leaseDurationSeconds ? leaseDurationSeconds * 1000 : leaseDurationMs
    const forMs = observed.since + durationMs - clock.monotonic()
    return forMs > 0 ? { type: 'held', by, forMs } : { type: 'expired' }
  }

  /** A time for the record, never the same twice, since an unchanged record looks dead. */
  const stamp = () => {
    const now = clock.now()
    const plain = microTime(now)
    lastStamp = plain === lastStamp ? microTime(now, 1) : plain
    return lastStamp
  }

  const write = async (holder: string, signal?: AbortSignal): Promise<number> => {
    const before = observed?.lease
    const now = stamp()
    const ours = before?.spec?.holderIdentity === identity && holder !== ''
    const transitions = before?.spec?.leaseTransitions ?? 0
    const body = {
      apiVersion: apiVersionOf(leases),
      kind: leases.kind,
      metadata: before?.metadata ?? ref,
      spec: {
        holderIdentity: holder,
        leaseDurationSeconds: holder === '' ? 1 : Math.ceil(leaseDurationMs / 1000),
        acquireTime: ours ? (before.spec?.acquireTime ?? now) : now,
        renewTime: now,
        leaseTransitions: before && holder !== '' && !ours ? transitions + 1 : transitions,
      },
    }
    const sent = clock.monotonic()
    const call = { timeoutMs, signal }
    observe(
      before
        ? await api.replace(leases, ref, body, call)
        : await api.create(leases, body, { ...call, namespace }),
    )
    return sent
  }

  return {
    lease: () => observed?.lease,
    holder: () => holderOf(observed?.lease),
    read,
    verdict,
    write,
  }
}

/**
 * Checks only equality: a record that changed is alive, whichever process wrote it. Labels and annotations belong to
 * others.
 */
function sameRecord(a: Lease, b: Lease): boolean {
  return (
    a.metadata.uid === b.metadata.uid &&
    a.spec?.holderIdentity === b.spec?.holderIdentity &&
    a.spec?.leaseDurationSeconds === b.spec?.leaseDurationSeconds &&
    a.spec?.acquireTime === b.spec?.acquireTime &&
    a.spec?.renewTime === b.spec?.renewTime &&
    a.spec?.leaseTransitions === b.spec?.leaseTransitions
  )
}
