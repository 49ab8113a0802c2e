import { isAgentError } from '../../api/agent-errors.ts'
import type { SentinelClient } from './client.ts'

/**
 * Ends the guard of every pod here before its sentinel ends. Without a sentinel, a fenced primary would stay stopped, and
 * the kernel would drop the packets of each guarded pod.
 */
export async function unguardAll(
  sentinel: Pick<SentinelClient, 'onVoting' | 'tellVotes' | 'unguard'>,
  signal: AbortSignal,
): Promise<void> {
  const guarded = new Set<string>()
  const forget = sentinel.onVoting(news => {
    if (news.type !== 'silent') guarded.add(news.name)
  })
  try {
    await sentinel.tellVotes(signal)
    for (const name of guarded) await sentinel.unguard(name, signal)
  } catch (error) {
    // No sentinel runs.
    if (!isAgentError(error, 'SentinelUnavailable', 'SentinelLost')) throw error
  } finally {
    forget()
  }
}
