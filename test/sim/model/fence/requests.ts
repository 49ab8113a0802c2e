/** The sentinel's requests about other machines, primaries and votes, as an agent gives them. */
import type { SentinelClient, VotingNews } from '../../../../src/agent/sentinel/client.ts'
import { AgentError } from '../../../../src/api/agent-errors.ts'
import { isApiServer, partsOf } from '../../../../src/api/fence.ts'
import { unlessAborted } from '../../../../src/kube/abort.ts'
import { setsAsked } from '../../../../src/slot/decide/fence/electorate.ts'
import { firstHeartbeatMs } from '../../../../src/slot/decide/fence/voter.ts'
import type { Party, VirtualTime } from '../virtual-time.ts'
import type { Machine } from '../world.ts'
import type { Heartbeats } from './heartbeats.ts'
import { askedBy, type Claim, type Primary, type Voting } from './voting.ts'

export type VotingRequests = Pick<
  SentinelClient,
  | ('heartbeats' | 'addPeer' | 'removePeer' | 'guard' | 'unguard' | 'answered')
  | ('vote' | 'unvote' | 'tellVotes' | 'onVoting')
>

type Guard = Parameters<SentinelClient['guard']>[0]

/** @param party the agent */
export function createVotingRequests(
  machine: Machine,
  time: VirtualTime,
  party: Party,
  heartbeats: Heartbeats,
): VotingRequests {
  const clock = time.clockOf(party)
  const answer = async () => {
    await clock.sleep(1)
    if (!machine.voting.isUp) throw new AgentError('SentinelUnavailable', 'it is being restarted')
  }
  return {
    async heartbeats(port) {
      await answer()
      machine.voting.port = port
      heartbeats.changed()
      return { port, run: machine.voting.run }
    },
    async addPeer(peer) {
      await answer()
      machine.voting.peers.set(peer.name, peer)
      heartbeats.changed()
    },
    async removePeer(name) {
      await answer()
      machine.voting.peers.delete(name)
      heartbeats.changed()
    },
    async guard(request, signal) {
      await answer()
      const wrong = misfit(machine.voting, request)
      if (wrong !== undefined) throw new AgentError('SentinelRefused', `primary: refused ${wrong}`)
      const pod = machine.pods.get(request.cgroups[0] ?? '')
      if (pod === undefined || pod.killed) throw new AgentError('ProcessGone', 'primary')
      const refusal = await unlessAborted(begin(machine, time, heartbeats, request), signal)
      await answer()
      if (refusal === 'no-answers') throw new AgentError('NoAnswers')
      if (refusal !== undefined) throw new AgentError('SentinelRefused', `primary: refused ${refusal}`)
    },
    async unguard(name) {
      await answer()
      heartbeats.release(machine, name)
    },
    async answered({ name, term, run, sentNs }) {
      await answer()
      const sentAt = Number(sentNs / 1_000n) / 1_000 - (clock.monotonic() - time.now())
      if (sentAt > time.now() + 1) throw new AgentError('SentinelRefused', 'answered: bad-time')
      const primary = machine.voting.primaries.get(name)
      const asked = primary === undefined ? [] : askedBy(primary).filter(each => each.claim.term === term)
      for (const { claim, electorate } of asked)
        for (const voter of setsAsked(electorate).flat()) {
          if (!isApiServer(voter) || partsOf(voter).run !== run) continue
          claim.sentAt.set(voter, Math.max(claim.sentAt.get(voter) ?? 0, sentAt))
        }
      heartbeats.changed()
      return asked.length > 0
    },
    async vote({ slot, term, node, run, timeoutMs, isDenied }) {
      await answer()
      const { votes } = machine.voting
      const known = votes.get(slot)
      if (known !== undefined && term < known.term) throw new AgentError('SentinelRefused', 'vote: older')
      const isSame = known?.term === term
      if (isSame && (known.run !== run || known.node !== node))
        throw new AgentError('SentinelRefused', 'vote: another-primary')
      if (isSame && known.timeoutMs !== timeoutMs)
        throw new AgentError('SentinelRefused', 'vote: bad-timeout')
      const heardAt =
        isSame && known.isOpen ? known.heardAt : time.now() + firstHeartbeatMs / machine.clockRate
      votes.set(slot, {
        ...{ slot, term, node, run, timeoutMs, isDenied },
        ...{
          heardAt,
          isOpen: true,
          stated: known?.stated,
          isSuspect: isSame && known.isOpen && known.isSuspect,
        },
      })
      heartbeats.changed()
    },
    async unvote(slot) {
      await answer()
      const vote = machine.voting.votes.get(slot)
      if (vote?.stated === undefined) machine.voting.votes.delete(slot)
      else {
        vote.isOpen = false
        vote.isSuspect = false
      }
      heartbeats.changed()
    },
    async tellVotes() {
      await answer()
      for (const listener of machine.voting.listeners) heartbeats.tell(machine, listener)
    },
    onVoting(listener) {
      const hear = (news: VotingNews) => time.after(party, 1, () => listener(news))
      machine.voting.listeners.add(hear)
      return () => machine.voting.listeners.delete(hear)
    },
  }
}

/** Returns why a request does not fit what the sentinel has acknowledged; undefined: it fits. */
function misfit({ primaries, acknowledged }: Voting, request: Guard): string | undefined {
  const { name, slot, term, version, timeoutMs } = request
  const other = primaries.get(name)
  if (other !== undefined && other.slot !== slot) return 'another-slot'
  const known = acknowledged.get(slot)
  if (known === undefined) return undefined
  if (term < known.term || (term === known.term && version < known.version)) return 'older'
  const isAnothers = (each: Primary) => each.uid !== name && each.slot === slot && each.current !== undefined
  if ([...primaries.values()].some(isAnothers)) return 'another-pod'
  if (term > known.term || other?.current === undefined) return undefined
  const { claim, electorate } = other.current
  if (claim.timeoutMs !== timeoutMs) return 'bad-timeout'
  const isSame = String(setsAsked(electorate)) === String(setsAsked(request))
  return version > known.version || isSame ? undefined : 'bad-version'
}

/**
 * Resolves at the first sufficient answers, or with a refusal. The earlier voters stay in force until then. The same
 * version of the same term counts at once.
 */
async function begin(
  { voting }: Machine,
  time: VirtualTime,
  heartbeats: Heartbeats,
  request: Guard,
): Promise<string | undefined> {
  const { name: uid, slot, term, version, timeoutMs, voters, next } = request
  const before = voting.primaries.get(uid)
  const electorate = { version, voters, next }
  if (before?.current?.claim.term === term && before.current.electorate.version === version) {
    before.current = { claim: before.current.claim, electorate }
    voting.acknowledged.set(slot, { uid, term, version })
    heartbeats.changed()
    return undefined
  }
  before?.pending?.end('replaced')
  const claim: Claim = [before?.pending, before?.current].find(each => each?.claim.term === term)?.claim ?? {
    slot,
    term,
    timeoutMs,
    sentAt: new Map(),
    refused: new Set(),
    exchanges: new Map(),
  }
  const { promise, resolve: end } = Promise.withResolvers<string | undefined>()
  const primary: Primary = before ?? {
    ...{ uid, slot, current: undefined, pending: undefined, serves: false, toldAloneAt: 0 },
  }
  primary.pending = { claim, electorate, until: time.now() + timeoutMs, end }
  voting.primaries.set(uid, primary)
  heartbeats.changed()
  return await promise
}
