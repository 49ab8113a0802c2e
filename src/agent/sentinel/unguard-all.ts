import { isAgentError } from '../../api/agent-errors.ts'
import type { Clock } from '../../kube/clock.ts'
import type { SentinelClient } from './client.ts'

/**
 * The fate of a guarded pod when its agent leaves the node. `Waits`: its Lease names voters, and if they hear nothing of it,
 * another pod takes over. `Ends`: another pod has its slot, or it has died or is gone. `GoesOn`: without voters.
 */
export type Fate = 'Waits' | 'Ends' | 'GoesOn'

export interface UnguardOptions {
  /** Returns the fate of a guarded pod now. @throws KubeError. */
  readonly fateOf: (uid: string, signal: AbortSignal) => Promise<Fate>
  /** Ends all processes of a pod. */
  readonly end: (uid: string) => Promise<void>
  /** Called with the uids of the pods that stay guarded, before each pause. */
  readonly onWait: (uids: readonly string[]) => void
  readonly clock: Pick<Clock, 'sleep'>
  readonly signal: AbortSignal
}

const againMs = 500

/**
 * Ends the guard of every pod here before its sentinel ends. Without a sentinel, a fenced primary would stay stopped, and
 * the kernel would drop the packets of each guarded pod. A fenced pod that must not run again ends first.
 *
 * @throws KubeError; the signal's reason.
 */
export async function unguardAll(
  sentinel: Pick<SentinelClient, 'onVoting' | 'tellVotes' | 'unguard'>,
  { fateOf, end, onWait, clock, signal }: UnguardOptions,
): Promise<void> {
  /** By uid: whether it is fenced. */
  const guarded = new Map<string, boolean>()
  const forget = sentinel.onVoting(news => {
    if (news.type === 'serves' || news.type === 'stops') guarded.set(news.name, news.type === 'stops')
  })
  try {
    await sentinel.tellVotes(signal)
    for (;;) {
      for (const [uid, isFenced] of [...guarded]) {
        const fate = await fateOf(uid, signal)
        if (fate === 'Waits') continue
        if (fate === 'Ends' && isFenced) await end(uid)
        await sentinel.unguard(uid, signal, fate === 'Ends' && isFenced)
        guarded.delete(uid)
      }
      if (guarded.size === 0) return
      onWait([...guarded.keys()])
      await clock.sleep(againMs, signal)
    }
  } catch (error) {
    // No sentinel runs.
    if (!isAgentError(error, 'SentinelUnavailable', 'SentinelLost')) throw error
  } finally {
    forget()
  }
}
