/**
 * Leader election on a Lease, with client-go's semantics: one of several processes does the work, the others stand by
 * with warm caches. docs/adr/0032-leader-election.md explains why it is safe and which guarantees it cannot give.
 *
 * - No process compares clocks. A standby takes over when it has seen the same record for the record's full duration on
 *   its own monotonic clock; the times inside the record are for people.
 * - The leader counts from the moment it SENT its last successful renewal, and stops `renewDeadlineMs` after that. This
 *   is before any standby's count can end, since that count starts after the renewal was stored. A late answer extends
 *   nothing beyond that.
 * - Every write carries the resourceVersion it is based on, so only one of two concurrent writers succeeds.
 */
import type { Api } from './api-types.ts'
import { type Clock, elapses } from './clock.ts'
import { isKubeError } from './errors.ts'
import { createLeaseRecord } from './lease-record.ts'
import type { Log } from './log.ts'
import type { Random } from './random.ts'
import { StopNow } from './stop.ts'

export interface ElectionMetrics {
  /** leader_election_master_status */
  leading?(name: string, leading: boolean): void
}

export interface ElectorOptions {
  readonly api: Pick<Api, 'get' | 'create' | 'replace'>
  readonly namespace: string
  /** Name of the Lease. */
  readonly name: string
  /**
   * Must be unique to this process: two processes that share an identity both lead. A pod's name with a random part is
   * good.
   */
  readonly identity: string
  /** How long a standby waits for a sign of life. Stored rounded up to seconds. Default 2000. */
  readonly leaseDurationMs?: number | undefined
  /** How long after its last renewal a leader stops. Below leaseDurationMs. Default 1300. */
  readonly renewDeadlineMs?: number | undefined
  /** Time between renewals, and between a standby's reads. Default 300. */
  readonly retryPeriodMs?: number | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics?: ElectionMetrics | undefined
}

/** Reason of a leader's signals: why it had to stop. */
export class LeadershipLost extends StopNow {
  override readonly name = 'LeadershipLost'
}

/** Thrown by a leader's work that cannot begin: the elector releases the lease, so that another process may try. */
export class GiveBack extends Error {
  override readonly name = 'GiveBack'
}

export interface ElectionRun {
  /**
   * The work of the leader. When it resolves or rejects, the elector releases the lease and `run` ends the same way. A
   * GiveBack ends only the term: the campaign continues after one lease duration.
   * @param stop fires when the work should end: at the election's own signal (the work may finish its current step, and
   * the lease is renewed meanwhile), or at loss of leadership (the reason is LeadershipLost: no further write).
   * @param lost fires only when leadership is lost, also while the work finishes.
   */
  readonly onStarted: (stop: AbortSignal, lost: AbortSignal) => Promise<void>
  /** Called after the work of one term has ended and the lease was released or lost. */
  readonly onStopped?: (() => void) | undefined
  /** Ends the election. */
  readonly signal: AbortSignal
}

export interface Elector {
  /**
   * Campaigns, leads, and campaigns again after a loss of leadership, until the signal fires or the work ends by
   * itself. Two terms never overlap in one process. @throws the error of the work.
   */
  run(run: ElectionRun): Promise<void>
  /** True while leading, by the clock: false as soon as the term ends, even if a late timer has not noticed yet. */
  isLeader(): boolean
  /** The holder last seen. */
  leader(): string | undefined
  /**
   * The lease and its number of transitions. If two terms of this process have the same value, no other process led in
   * between.
   */
  reign(): string | undefined
}

export function createElector(options: ElectorOptions): Elector {
  const { api, namespace, name, identity, clock, random, log, metrics } = options
  const { leaseDurationMs = 2000, renewDeadlineMs = 1300, retryPeriodMs = 300 } = options
  if (!(leaseDurationMs > renewDeadlineMs && renewDeadlineMs > 2 * retryPeriodMs && retryPeriodMs > 0))
    throw new RangeError('needed: leaseDurationMs > renewDeadlineMs > 2 * retryPeriodMs > 0')
  if (identity === '') throw new RangeError('an elector needs an identity')

  /**
   * Two tries fit into a term, so that one request lost on a dead connection does not end it. The first is sent one
   * period after the last renewal, the second as soon as the first has failed; each gets this long.
   */
  const timeoutMs = (renewDeadlineMs - retryPeriodMs) / 2
  const record = createLeaseRecord({
    api,
    namespace,
    name,
    identity,
    leaseDurationMs,
    timeoutMs,
    clock,
    log,
  })
  /** Monotonic milliseconds until which this process leads. */
  let leadsUntil = -Infinity

  /** @returns when the successful request was sent; undefined when another process holds the lease. */
  const acquire = async (): Promise<number | undefined> => {
    await record.read()
    return record.verdict().type === 'held' ? undefined : await record.write(identity)
  }

  /** @returns when the successful request was sent; the holder when the lease is lost. */
  const renew = async (signal: AbortSignal): Promise<number | { readonly heldBy: string }> => {
    try {
      return await record.write(identity, signal)
    } catch (error) {
      // Another client wrote or deleted it, or an earlier renewal of ours was stored although its answer never came.
      if (!isKubeError(error, 'Conflict', 'NotFound', 'AlreadyExists', 'Invalid')) throw error
    }
    await record.read(signal)
    const { type } = record.verdict()
    if (type === 'ours' || type === 'absent') return await record.write(identity, signal)
    // Even if the lease is free by now: another process may have led in between.
    return { heldBy: record.holder() ?? 'nobody' }
  }

  const release = async () => {
    while (clock.monotonic() < leadsUntil) {
      try {
        await record.write('')
        log.info({ lease: name }, 'leadership released')
        return
      } catch (error) {
        if (!isKubeError(error, 'Conflict', 'NotFound')) {
          log.warn({ lease: name, err: error }, 'cannot release the lease; it will expire')
          return
        }
      }
      try {
        await record.read()
      } catch (error) {
        log.warn({ lease: name, err: error }, 'cannot release the lease; it will expire')
        return
      }
      if (record.verdict().type !== 'ours') return
    }
  }

  /** @returns when leading began; undefined when the signal fired first. */
  const campaign = async (signal: AbortSignal): Promise<number | undefined> => {
    let lastProblem = ''
    while (!signal.aborted) {
      try {
        // Without the signal: an aborted request may still win the lease, for a process that is gone.
        const sent = await acquire()
        if (sent !== undefined && clock.monotonic() < sent + renewDeadlineMs) return sent
        lastProblem = ''
      } catch (error) {
        if (!isKubeError(error)) throw error
        // Losing the race to another candidate is no problem. An outage is logged once, not three times a second.
        const problem = error.code === 'Conflict' || error.code === 'AlreadyExists' ? '' : error.code
        if (problem !== '' && problem !== lastProblem)
          log.warn({ lease: name, err: error }, 'cannot read or take the lease')
        lastProblem = problem
      }
      const state = record.verdict()
      const pauseMs = retryPeriodMs * (1 + 0.2 * random.next())
      await elapses(clock, state.type === 'held' ? Math.min(pauseMs, state.forMs) : pauseMs, signal)
    }
    return undefined
  }

  /** One term. @returns whether to campaign again. */
  const lead = async (since: number, { onStarted, onStopped, signal }: ElectionRun): Promise<boolean> => {
    leadsUntil = since + renewDeadlineMs
    if (signal.aborted) {
      // The signal fired just when this process won.
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
          // Whatever the error, the next try comes in time, or the watchdog ends the term. A slow try has used up the
          // pause already; a try that failed at once must not become a tight loop.
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
      if (isGivenBack) log.error({ lease: name, err: error }, 'releasing leadership early')
      // After `stop` an error of the work does not end the election. It is logged unless it is the reason of `stop`.
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
    leader: record.holder,
    reign() {
      const lease = record.lease()
      return lease && `${lease.metadata.uid}/${lease.spec?.leaseTransitions ?? 0}`
    },
  }
}
