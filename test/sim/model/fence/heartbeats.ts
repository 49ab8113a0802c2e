/**
 * The heartbeats between machines. No datagram is an event: whether beats and answers come through changes only when a
 * machine, a link or a request changes. Between two changes, every beat comes through or none does.
 */
import type { HeartbeatPeer, VotingNews } from '../../../../src/agent/sentinel/client.ts'
import { isApiServer, partsOf, type Voter } from '../../../../src/api/fence.ts'
import type { Random } from '../../../../src/kube/random.ts'
import { setsAsked } from '../../../../src/slot/decide/fence/electorate.ts'
import { servesUntil } from '../../../../src/slot/decide/fence/primary.ts'
import { firstHeartbeatMs, mayState, suspicionShare } from '../../../../src/slot/decide/fence/voter.ts'
import type { Party, VirtualTime } from '../virtual-time.ts'
import { freeze, type Machine, reaches, unfreeze } from '../world.ts'
import { type Asked, askedBy, type Claim, judge, type Primary, type Vote } from './voting.ts'

export interface Heartbeats {
  /** Call at the moment of each request to a sentinel, and of each change of a machine or of a link between two. */
  changed(): void
  /** Lets a pod run without voters. */
  release(machine: Machine, uid: string): void
  /** Tells one listener the state of each primary and of each statement. */
  tell(machine: Machine, listener: (news: VotingNews) => void): void
  /** The sentinel ends, and the next one begins with its promises. */
  end(machine: Machine): void
  begin(machine: Machine): void
}

interface Options {
  readonly machines: readonly Machine[]
  readonly time: VirtualTime
  readonly party: Party
  readonly random: Random
  readonly onNews: (machine: Machine, news: VotingNews) => void
  /** A pod was stopped, or runs again. */
  readonly onFreeze: (machine: Machine, isFrozen: boolean) => void
}

/** Beats in a time-out. */
const beats = 12
const never = Number.POSITIVE_INFINITY

export function createHeartbeats({ machines, time, party, random, onNews, onFreeze }: Options): Heartbeats {
  const byName = new Map(machines.map(machine => [machine.name, machine]))
  let dueAt = never
  let timers = 0

  const tellAll = (machine: Machine, news: VotingNews) => {
    onNews(machine, news)
    for (const listener of machine.voting.listeners) listener(news)
  }
  const claims = function* () {
    for (const machine of machines)
      for (const primary of machine.voting.primaries.values())
        for (const claim of new Set(askedBy(primary).map(each => each.claim))) yield { machine, claim }
  }

  /** Up to now, everything was as it was at the last change. */
  const catchUp = (now: number) => {
    for (const { claim } of claims())
      for (const [voter, { hears, answers }] of claim.exchanges) {
        const vote = byName.get(partsOf(voter).node)?.voting.votes.get(claim.slot)
        if (hears && vote?.term === claim.term) vote.heardAt = now
        if (answers) claim.sentAt.set(voter, now)
      }
  }
  const exchange = (machine: Machine, claim: Claim, voter: Voter, now: number): number => {
    const { node, run } = partsOf(voter)
    const other = byName.get(node)
    const known = claim.exchanges.get(voter)
    const state = known ?? { hears: false, answers: false, beginsAt: undefined }
    if (known === undefined) claim.exchanges.set(voter, state)
    const arrives = other !== undefined && other.voting.run === run && beatArrives(machine, other)
    if (!arrives) {
      Object.assign(state, { hears: false, answers: false, beginsAt: undefined })
      return never
    }
    state.beginsAt ??= now + 1 + random.next() * (claim.timeoutMs / beats)
    if (now < state.beginsAt) return state.beginsAt
    const verdict = judge(other.voting, claim, { name: machine.name, run: machine.voting.run })
    const isReplied = isAwake(other) && reaches(other, machine)
    if (isReplied && verdict === 'Refused') claim.refused.add(voter)
    state.hears = verdict === 'Answered'
    state.answers = isReplied && state.hears && !claim.refused.has(voter)
    return never
  }

  const resolve = (machine: Machine, primary: Primary, now: number): number => {
    const { pending } = primary
    if (pending === undefined) return never
    if (untilOf(machine, pending, now) > now) {
      primary.pending = undefined
      primary.current = pending
      const { uid, slot } = primary
      const { claim, electorate } = pending
      machine.voting.acknowledged.set(slot, { uid, term: claim.term, version: electorate.version })
      pending.end(undefined)
      return never
    }
    if (now < pending.until) return pending.until
    primary.pending = undefined
    if (primary.current === undefined) machine.voting.primaries.delete(primary.uid)
    pending.end('no-answers')
    return never
  }
  const serve = (machine: Machine, primary: Primary, now: number): number => {
    const { current, uid } = primary
    if (current === undefined) return never
    const pod = machine.pods.get(uid)
    const until = untilOf(machine, current, now)
    if (pod !== undefined) pod.passesUntil = until
    const mayServe = until > now
    if (primary.serves !== mayServe) {
      primary.serves = mayServe
      tellAll(machine, { type: mayServe ? 'serves' : 'stops', name: uid, term: current.claim.term })
    }
    if (pod !== undefined && (pod.frozen === undefined) !== mayServe) {
      if (mayServe) unfreeze(pod, now)
      else freeze(pod, now)
      onFreeze(machine, !mayServe)
    }
    return mayServe ? until : never
  }
  /** An answer of the API server is wanted when the latest sufficient answers are half over. */
  const tellAlone = (machine: Machine, primary: Primary, now: number): number => {
    const asked = primary.pending ?? primary.current
    if (asked === undefined || !setsAsked(asked.electorate).flat().some(isApiServer)) return never
    const { timeoutMs, term } = asked.claim
    const since = untilOf(machine, asked, now) - timeoutMs / 3
    const at = Math.max(since, primary.toldAloneAt + timeoutMs / 6)
    if (at > now) return at
    primary.toldAloneAt = now
    tellAll(machine, { type: 'alone', name: primary.uid, term })
    return now + timeoutMs / 6
  }
  const state = (machine: Machine, vote: Vote, now: number): number => {
    if (!vote.isOpen || (vote.stated !== undefined && vote.stated >= vote.term)) return never
    const { clockRate, voting } = machine
    const hears = isHeard(machine, vote)
    if (hears || voting.port === undefined || !voting.peers.has(vote.node)) {
      vote.heardAt = hears ? now : Math.max(vote.heardAt, now)
      if (vote.isSuspect) tellAll(machine, { type: 'trust', slot: vote.slot, term: vote.term })
      vote.isSuspect = false
      return never
    }
    if (!mayState(vote.heardAt * clockRate, now * clockRate, vote.timeoutMs)) {
      const at = vote.heardAt + vote.timeoutMs / clockRate
      const suspectAt = at - (vote.timeoutMs / clockRate) * suspicionShare
      if (now < suspectAt) return suspectAt
      if (!vote.isSuspect) tellAll(machine, { type: 'suspect', slot: vote.slot, term: vote.term })
      vote.isSuspect = true
      return at
    }
    vote.stated = vote.term
    vote.isSuspect = false
    tellAll(machine, { type: 'silent', slot: vote.slot, term: vote.term })
    return never
  }
  const isHeard = ({ name, voting }: Machine, { slot, term, node }: Vote): boolean => {
    const voter = `${name}/${voting.run}`
    for (const primary of byName.get(node)?.voting.primaries.values() ?? [])
      for (const { claim } of askedBy(primary))
        if (claim.slot === slot && claim.term === term && claim.exchanges.get(voter)?.hears) return true
    return false
  }

  const settle = () => {
    const now = time.now()
    catchUp(now)
    let next = never
    const by = (at: number) => {
      next = Math.min(next, at)
    }
    for (const { machine, claim } of claims()) {
      const voters = votersOf(machine, claim)
      for (const voter of claim.exchanges.keys()) if (!voters.has(voter)) claim.exchanges.delete(voter)
      for (const voter of voters) if (!isApiServer(voter)) by(exchange(machine, claim, voter, now))
    }
    for (const machine of machines) {
      if (!isAwake(machine)) {
        for (const primary of machine.voting.primaries.values()) sealed(machine, primary, now)
        continue
      }
      for (const primary of [...machine.voting.primaries.values()]) {
        by(resolve(machine, primary, now))
        by(serve(machine, primary, now))
        by(tellAlone(machine, primary, now))
      }
      for (const vote of machine.voting.votes.values()) by(state(machine, vote, now))
    }
    if (next === never || (next >= dueAt && dueAt > now)) return
    dueAt = next
    timers += 1
    const timer = timers
    time.after(party, Math.max(1, Math.ceil(next - now)), () => {
      if (timer !== timers) return
      dueAt = never
      settle()
    })
  }

  return {
    changed: settle,
    release(machine, uid) {
      const pod = machine.pods.get(uid)
      machine.voting.primaries.get(uid)?.pending?.end('gone')
      machine.voting.primaries.delete(uid)
      settle()
      if (pod === undefined) return
      pod.passesUntil = never
      if (pod.frozen === undefined) return
      unfreeze(pod, time.now())
      onFreeze(machine, false)
    },
    tell,
    end(machine) {
      machine.voting.isUp = false
      settle()
      for (const [uid, primary] of [...machine.voting.primaries]) {
        primary.pending?.end('lost')
        primary.pending = undefined
        if (primary.current === undefined) machine.voting.primaries.delete(uid)
      }
    },
    begin(machine) {
      const { voting } = machine
      voting.isUp = true
      voting.restarts += 1
      for (const { current } of voting.primaries.values()) {
        current?.claim.sentAt.clear()
        current?.claim.refused.clear()
        current?.claim.exchanges.clear()
      }
      // It listens from now on.
      for (const vote of voting.votes.values()) {
        vote.heardAt = time.now() + firstHeartbeatMs / machine.clockRate
        vote.isSuspect = false
      }
      settle()
      for (const listener of voting.listeners) tell(machine, listener)
    },
  }
}

/** Its sentinel runs. */
const isAwake = ({ up, kernel, voting }: Machine): boolean => up && !kernel.paused && voting.isUp

function tell({ voting }: Machine, listener: (news: VotingNews) => void): void {
  for (const { uid, current, serves } of voting.primaries.values())
    if (current !== undefined)
      listener({ type: serves ? 'serves' : 'stops', name: uid, term: current.claim.term })
  for (const { slot, term, stated, isOpen, isSuspect } of voting.votes.values()) {
    if (stated !== undefined) listener({ type: 'silent', slot, term: stated })
    if (isOpen && (stated === undefined || stated < term))
      listener({ type: isSuspect ? 'suspect' : 'trust', slot, term })
  }
}

const votersOf = ({ voting }: Machine, claim: Claim): ReadonlySet<Voter> => {
  const all = [...voting.primaries.values()].flatMap(askedBy)
  return new Set(all.flatMap(asked => (asked.claim === claim ? setsAsked(asked.electorate).flat() : [])))
}

const isPeer = ({ voting }: Machine, other: Machine, key?: HeartbeatPeer['key']): boolean => {
  const peer = voting.peers.get(other.name)
  return peer?.run === other.voting.run && (key === undefined || peer.key === key)
}

/** A machine that is paused keeps what arrives; its sentinel reads it afterwards, before it states anything. */
const beatArrives = (from: Machine, to: Machine): boolean =>
  isAwake(from) &&
  to.voting.isUp &&
  from.voting.port !== undefined &&
  to.voting.port !== undefined &&
  isPeer(from, to) &&
  isPeer(to, from, from.voting.peers.get(to.name)?.key) &&
  reaches(from, to)

/** Nothing renews the switch of a primary any more. */
function sealed(machine: Machine, { current, uid }: Primary, now: number): void {
  const pod = machine.pods.get(uid)
  if (pod?.passesUntil === never && current !== undefined) pod.passesUntil = untilOf(machine, current, now)
}

/** Returns until when these voters let the pod serve, true time, ms; infinite: as long as nothing changes. */
function untilOf({ clockRate }: Machine, { claim, electorate }: Asked, now: number): number {
  const sentAt = new Map<Voter, number>()
  for (const [voter, at] of claim.sentAt) sentAt.set(voter, at * clockRate)
  for (const [voter, { answers }] of claim.exchanges) if (answers) sentAt.set(voter, never)
  const until = servesUntil(electorate, sentAt, claim.timeoutMs) / clockRate
  return until <= now ? Number.NEGATIVE_INFINITY : until
}
