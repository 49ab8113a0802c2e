/**
 * Leader election on a Lease, with client-go's semantics: of several processes one does the work, the others stand by
 * with warm caches. docs/adr/0032-leader-election.md says why it is safe and what it cannot promise.
 *
 * - Nobody compares clocks. A standby takes over when it has seen the same record for the record's full duration on its
 *   own monotonic clock; the times inside the record are for people.
 * - The leader counts from the moment it SENT its last successful renewal, and stops `renewDeadlineMs` after that:
 *   before any standby's count, which starts after the renewal was stored, can end. An answer that comes late extends
 *   nothing beyond that.
 * - Every write carries the resourceVersion it is based on, so of two who try only one succeeds.
 */
import type { Api } from './api-types.ts'
import { type Clock, elapses } from './clock.ts'
import { isKubeError } from './errors.ts'
import type { Log } from './log.ts'
import { microTime } from './micro-time.ts'
import type { Random } from './random.ts'
import { apiVersionOf, type Lease, leases } from './resources.ts'
import { StopNow } from './stop.ts'

export interface ElectionMetrics {
  /** leader_election_master_status */
  leading?(name: string, leading: boolean): void
}

export interface ElectorOptions {
  readonly api: Pick<Api, 'get' | 'create' | 'replace'>
  readonly namespace: string
  /** Of the Lease. */
  readonly name: string
  /** Must be this process' alone: two that share one both lead. A pod's name with a random part is good. */
  readonly identity: string
  /** How long a standby waits for a sign of life. Stored rounded up to seconds. Default 2000. */
  readonly leaseDurationMs?: number | undefined
  /** How long after its last renewal a leader stops. Below leaseDurationMs. Default 1300. */
  readonly renewDeadlineMs?: number | undefined
  /** Time between renewals, and between a standby's looks. Default 300. */
  readonly retryPeriodMs?: number | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics?: ElectionMetrics | undefined
}

/** Why a leader had to stop: the reason of its signals. */
export class LeadershipLost extends StopNow {
  override readonly name = 'LeadershipLost'
}

/** Thrown by the work of a leader that cannot begin: the lease is released, so that another one may try. */
export class GiveBack extends Error {
  override readonly name = 'GiveBack'
}

export interface ElectionRun {
  /**
   * The work of the leader. Its result ends the election: resolved or rejected, the lease is released and `run` ends
   * the same way; but a GiveBack ends the term only, and the campaign goes on after one lease duration.
   * @param stop fires when the work should end: the election's own signal (the work may finish what it is doing, the
   *   lease is renewed meanwhile), or leadership lost (the reason is LeadershipLost: not one write more).
   * @param lost fires only when leadership is lost, also while the work finishes.
   */
  readonly onStarted: (stop: AbortSignal, lost: AbortSignal) => Promise<void>
  /** After the work of one term has ended and the lease was released or lost. */
  readonly onStopped?: (() => void) | undefined
  /** Ends the election. */
  readonly signal: AbortSignal
}

export interface Elector {
  /**
   * Campaigns, leads, campaigns again when leadership was lost, until the signal fires or the work ends by itself.
   * Two terms never overlap in one process. @throws what the work threw.
   */
  run(run: ElectionRun): Promise<void>
  /** True while leading, by the clock: also false in the moment before a late timer notices the end of the term. */
  isLeader(): boolean
  /** The holder last seen. */
  leader(): string | undefined
  /** The lease and how often it has changed hands: between two terms of this process with the same one nobody else led. */
  reign(): string | undefined
}

/** What a candidate may conclude from the record it knows. */
type Verdict =
  | { readonly type: 'absent' | 'ours' | 'free' | 'expired' }
  | { readonly type: 'held'; readonly by: string; readonly forMs: number }

interface Observation {
  readonly lease: Lease
  /** Monotonic milliseconds at which this very record was first seen. */
  readonly since: number
}

export function createElector(options: ElectorOptions): Elector {
  const { api, namespace, name, identity, clock, random, log, metrics } = options
  const { leaseDurationMs = 2000, renewDeadlineMs = 1300, retryPeriodMs = 300 } = options
  if (!(leaseDurationMs > renewDeadlineMs && renewDeadlineMs > 2 * retryPeriodMs && retryPeriodMs > 0))
    throw new RangeError('needed: leaseDurationMs > renewDeadlineMs > 2 * retryPeriodMs > 0')
  if (identity === '') throw new RangeError('an elector needs an identity')

  const ref = { namespace, name }
  /**
   * Two tries fit into a term, so that one request lost on a dead connection does not end it: the first is sent one
   * period after the renewal before it, the second as soon as the first has failed, and each has this long.
   */
  const timeoutMs = (renewDeadlineMs - retryPeriodMs) / 2
  let observed: Observation | undefined
  /** Monotonic milliseconds until which this process leads. */
  let leadsUntil = -Infinity
  let lastStamp = ''

  const observe = (lease: Lease | undefined) => {
    const holder = lease?.spec?.holderIdentity || undefined
    if (holder !== (observed?.lease.spec?.holderIdentity || undefined))
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
    // The holder's own promise counts, not what this process would promise.
    const durationMs = leaseDurationSeconds ? leaseDurationSeconds * 1000 : leaseDurationMs
    const forMs = observed.since + durationMs - clock.monotonic()
    return forMs > 0 ? { type: 'held', by, forMs } : { type: 'expired' }
  }

  /** A time for the record; never the same twice, since a record that does not change looks dead. */
  const stamp = () => {
    const now = clock.now()
    const plain = microTime(now)
    lastStamp = plain === lastStamp ? microTime(now, 1) : plain
    return lastStamp
  }

  /** Writes the record on top of the one that is known. @returns the monotonic time at which it was sent. */
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

  /** @returns when the successful request was sent; undefined when somebody else holds the lease. */
  const acquire = async (): Promise<number | undefined> => {
    await read()
    return verdict().type === 'held' ? undefined : await write(identity)
  }

  /** @returns when the successful request was sent; who holds the lease when it is lost. */
  const renew = async (signal: AbortSignal): Promise<number | { readonly heldBy: string }> => {
    try {
      return await write(identity, signal)
    } catch (error) {
      // Somebody wrote or deleted it, or an earlier renewal of ours was stored although its answer never came.
      if (!isKubeError(error, 'Conflict', 'NotFound', 'AlreadyExists', 'Invalid')) throw error
    }
    await read(signal)
    const { type } = verdict()
    if (type === 'ours' || type === 'absent') return await write(identity, signal)
    // Even if it is free by now: somebody else may have led in between.
    return { heldBy: observed?.lease.spec?.holderIdentity || 'nobody' }
  }

  const release = async () => {
    while (clock.monotonic() < leadsUntil) {
      try {
        await write('')
        log.info({ lease: name }, 'leadership released')
        return
      } catch (error) {
        if (!isKubeError(error, 'Conflict', 'NotFound')) {
          log.warn({ lease: name, err: error }, 'cannot release the lease; it will expire')
          return
        }
      }
      try {
        await read()
      } catch (error) {
        log.warn({ lease: name, err: error }, 'cannot release the lease; it will expire')
        return
      }
      if (verdict().type !== 'ours') return
    }
  }

  /** @returns when leading began; undefined when the signal fired first. */
  const campaign = async (signal: AbortSignal): Promise<number | undefined> => {
    let lastProblem = ''
    while (!signal.aborted) {
      try {
        // Without the signal: a request given up halfway may still win the lease, for a process that is gone.
        const sent = await acquire()
        if (sent !== undefined && clock.monotonic() < sent + renewDeadlineMs) return sent
        lastProblem = ''
      } catch (error) {
        if (!isKubeError(error)) throw error
        // Losing the race to another candidate is no problem; an outage is told once, not three times a second.
        const problem = error.code === 'Conflict' || error.code === 'AlreadyExists' ? '' : error.code
        if (problem !== '' && problem !== lastProblem)
          log.warn({ lease: name, err: error }, 'cannot read or take the lease')
        lastProblem = problem
      }
      const state = verdict()
      const pauseMs = retryPeriodMs * (1 + 0.2 * random.next())
      await elapses(clock, state.type === 'held' ? Math.min(pauseMs, state.forMs) : pauseMs, signal)
    }
    return undefined
  }

  /** One term. @returns whether to campaign again. */
  const lead = async (since: number, { onStarted, onStopped, signal }: ElectionRun): Promise<boolean> => {
    leadsUntil = since + renewDeadlineMs
    if (signal.aborted) {
      // Told to end in the very moment of the victory.
      await release()
      leadsUntil = -Infinity
      return false
    }
    const stop = new AbortController()
    const lost = new AbortController()
    const ended = new AbortController()
    metrics?.leading?.(name, true)
    log.info({ lease: name, identity }, 'leading')

    const lose = (why: string) => {
      if (lost.signal.aborted || ended.signal.aborted) return
      leadsUntil = -Infinity
      metrics?.leading?.(name, false)
      log.error({ lease: name, identity, why }, 'leadership lost')
      const reason = new LeadershipLost(why)
      ended.abort()
      lost.abort(reason)
      stop.abort(reason)
    }

    const watchdog = async () => {
      while (!ended.signal.aborted) {
        const leftMs = leadsUntil - clock.monotonic()
        if (leftMs > 0) await elapses(clock, leftMs, ended.signal)
        else lose('not renewed in time')
      }
    }

    const renewing = async () => {
      let pauseMs = retryPeriodMs
      while (!ended.signal.aborted) {
        await elapses(clock, pauseMs, ended.signal)
        if (ended.signal.aborted) return
        const startedAt = clock.monotonic()
        pauseMs = retryPeriodMs
        try {
          const outcome = await renew(ended.signal)
          if (ended.signal.aborted) return
          if (typeof outcome === 'object') lose(`held by ${outcome.heldBy}`)
          else if (clock.monotonic() >= leadsUntil) lose('not renewed in time')
          else leadsUntil = outcome + renewDeadlineMs
        } catch (error) {
          // Whatever it was: the next try comes in time, or the watchdog ends the term. A try that took its time has
          // been the pause; one that failed at once must not become a tight loop.
          pauseMs = Math.max(0, retryPeriodMs - (clock.monotonic() - startedAt))
          if (!ended.signal.aborted) log.warn({ lease: name, err: error }, 'renewal failed')
        }
      }
    }

    const onAbort = () => stop.abort(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    const keeping = Promise.all([watchdog(), renewing()])
    let isGivenBack = false
    try {
      await onStarted(stop.signal, lost.signal)
    } catch (error) {
      isGivenBack = error instanceof GiveBack
      if (isGivenBack) log.error({ lease: name, err: error }, 'giving the term back')
      // How the work ends after it was told to end says nothing about it, unless it says something new.
      else if (!stop.signal.aborted) throw error
      else if (error !== stop.signal.reason)
        log.warn({ lease: name, err: error }, 'the work ended with an error')
    } finally {
      signal.removeEventListener('abort', onAbort)
      ended.abort()
      await keeping
      if (!lost.signal.aborted) {
        await release()
        leadsUntil = -Infinity
        metrics?.leading?.(name, false)
      }
      onStopped?.()
    }
    if (isGivenBack) await elapses(clock, leaseDurationMs, signal)
    return (lost.signal.aborted || isGivenBack) && !signal.aborted
  }

  metrics?.leading?.(name, false)
  return {
    async run(run) {
      for (let again = true; again; ) {
        const since = await campaign(run.signal)
        if (since === undefined) return
        again = await lead(since, run)
      }
    },
    isLeader: () => clock.monotonic() < leadsUntil,
    leader: () => observed?.lease.spec?.holderIdentity || undefined,
    reign: () => observed && `${observed.lease.metadata.uid}/${observed.lease.spec?.leaseTransitions ?? 0}`,
  }
}

/** Equality only: whoever wrote it, it is alive if it changed. Labels and annotations are other people's. */
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
