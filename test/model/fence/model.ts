/**
 * A model of one epoch of a slot: its primary, the nodes that hold copies, the API server, and an operator that changes
 * voters and takes over. Every decision is made by the code of src/slot/decide/fence. The adversary chooses everything
 * else: which messages arrive and when, in which directions; when time passes; who is restarted, and what was written
 * before that; how old the electorate is that the primary reads.
 *
 * Two delays are left out, because they lose nothing. A late answer lets the primary serve no longer than a prompt one,
 * and a late statement lets no other pod take over earlier.
 */
import { apiServerVoter, type Electorate, nodeVoter, type Voter } from '../../../src/api/fence.ts'
import { setsAsked, stepTowards } from '../../../src/slot/decide/fence/electorate.ts'
import { isFenced } from '../../../src/slot/decide/fence/fenced.ts'
import { servesUntil } from '../../../src/slot/decide/fence/primary.ts'
import { mayAnswer, mayState } from '../../../src/slot/decide/fence/voter.ts'
import type { Model } from '../explore.ts'

/** Epoch that the model is about. */
const epoch = 1
const nodeTimeoutMs = 3_000
/** Clocks of machines run slower or faster by at most a tenth. The worst case: the primary's slower, the voters' faster. */
const primaryRate = 0.9
const voterRate = 1.1

export interface Bounds {
  /** Nodes that can hold copies, beside the primary's. */
  readonly holders: number
  /** Steps of time in a time-out: the ages of messages are multiples of this. */
  readonly ticks: number
  /** How many changes of voters the operator begins. */
  readonly changes: number
  /** How many holders are restarted, each once; it is another voter then. */
  readonly reboots: number
}

/** Facts that the parties remember. The rule needs both; without either, a counterexample must be found. */
export interface Memory {
  /** A voter that was restarted is another voter. */
  readonly runs: boolean
  /** A primary knows the latest electorate that it has read, also after a restart of its sentinel. */
  readonly electorates: boolean
}

/** A run of a holder's sentinel, or the API server. */
interface VoterState {
  /** Index of the holder; undefined: the API server. */
  readonly holder: number | undefined
  readonly run: number
  /** It has gone, and another run is in its place. Its statement stays. */
  readonly gone: boolean
  /** Ticks since it heard the primary, began to listen, or has gone; no higher than needed. */
  readonly heard: number
  /** Ticks since the sending of the latest heartbeat whose answer the primary has; no higher than needed. */
  readonly answered: number
  /** It has its vote: only then does it answer or state anything. */
  readonly hasVote: boolean
  /** It knows that it has stated silence. */
  readonly stated: boolean
  /** The operator knows that it has stated silence. */
  readonly told: boolean
}

interface State {
  readonly voters: readonly VoterState[]
  readonly electorate: Electorate
  /** The electorate that the primary asks; it survives restarts of its sentinel. */
  readonly known: Electorate
  /** Earlier electorates, which the primary may still read. */
  readonly earlier: readonly Electorate[]
  readonly acknowledged: number
  readonly changesLeft: number
  readonly rebootsLeft: number
  /** Another pod has the slot, with the next epoch. */
  readonly isTaken: boolean
}

const apiServer = apiServerVoter({ uid: 'report', silences: 0 })

const nameOf = ({ holder, run }: VoterState): Voter =>
  holder === undefined ? apiServer : nodeVoter(`n${holder}`, String(run))

export function fenceModel(
  { holders, ticks, changes, reboots }: Bounds,
  memory: Memory = { runs: true, electorates: true },
): Model<State> {
  const tickMs = nodeTimeoutMs / ticks
  /** The ages, in ticks, from which on nothing changes any more: an answer does not count, and silence is long enough. */
  const tooOld = firstAge(age => !countsAt(-age * tickMs * primaryRate))
  const longEnough = firstAge(age => mayState(-age * tickMs * voterRate, 0, nodeTimeoutMs))
  const fresh = {
    run: 0,
    gone: false,
    hasVote: false,
    heard: 0,
    answered: tooOld,
    stated: false,
    told: false,
  }
  const voters: VoterState[] = [
    { holder: undefined, ...fresh },
    ...Array.from({ length: holders }, (_, holder) => ({ holder, ...fresh })),
  ]
  const electorate: Electorate = { version: 1, voters: voters.map(nameOf) }

  const isServing = ({ voters: all, known }: State): boolean => {
    const sent = all.filter(({ answered }) => answered < tooOld)
    const sentAt = new Map(sent.map(voter => [nameOf(voter), -voter.answered * tickMs * primaryRate]))
    return servesUntil(known, sentAt, nodeTimeoutMs) > 0
  }
  const change = (state: State, at: number, about: Partial<VoterState>): State => ({
    ...state,
    voters: state.voters.map((voter, index) => (index === at ? { ...voter, ...about } : voter)),
  })
  const stepsOfVoter = (state: State, voter: VoterState, at: number): [string, State][] => {
    if (voter.gone) return []
    const name = nameOf(voter)
    const steps: [string, State][] = []
    const stated = voter.stated ? epoch : undefined
    // The way back may be cut.
    steps.push(
      voter.hasVote
        ? [`${name} loses its vote`, change(state, at, { hasVote: false })]
        : [`${name} gets its vote`, change(state, at, { hasVote: true, heard: 0 })],
    )
    if (voter.heard > 0) steps.push([`${name} hears the primary`, change(state, at, { heard: 0 })])
    // A heartbeat that was on its way is answered; its age counts for the primary, not for the voter.
    for (let age = 0; age < voter.answered; age += 1)
      if (voter.hasVote && mayAnswer(epoch, stated))
        steps.push([`${name} answers a heartbeat ${age} old`, change(state, at, { heard: 0, answered: age })])
    const heardAt = -voter.heard * tickMs * voterRate
    if (voter.hasVote && !voter.stated && mayState(heardAt, 0, nodeTimeoutMs))
      steps.push([`${name} states silence`, change(state, at, { stated: true, told: true })])
    if (state.rebootsLeft > 0 && voter.holder !== undefined && voter.run === 0) {
      const rebootsLeft = state.rebootsLeft - 1
      const gone = change(state, at, { gone: true, heard: 0 })
      const next = { ...fresh, holder: voter.holder, run: 1 }
      const rebooted = memory.runs
        ? { ...gone, voters: [...gone.voters, next] }
        : change(state, at, { heard: 0, stated: false, told: voter.told })
      steps.push([`${name} is restarted`, { ...rebooted, rebootsLeft }])
    }
    return steps
  }
  const stepsOfOperator = (state: State): [string, State][] => {
    if (state.isTaken) return []
    const { electorate: now, acknowledged } = state
    // The operator waits for a time-out after it has seen that another run is in the place of a voter.
    const isLongOver = ({ gone, heard }: VoterState) => gone && mayState(-heard * tickMs * voterRate, 0, nodeTimeoutMs)
    const silent = new Set(state.voters.filter(voter => voter.told || isLongOver(voter)).map(nameOf))
    const steps: [string, State][] = []
    if (isFenced(now, silent)) steps.push(['another pod takes over', { ...state, isTaken: true }])
    const to = (wanted: readonly Voter[], changesLeft: number, what: string) => {
      const next = stepTowards(now, wanted, acknowledged)
      if (next !== now)
        steps.push([what, { ...state, electorate: next, earlier: [...state.earlier, now], changesLeft }])
    }
    if (now.next !== undefined) to(now.next, state.changesLeft, 'the change of voters is complete')
    else if (state.changesLeft > 0)
      for (const wanted of choices(state.voters))
        to(wanted, state.changesLeft - 1, `the voters become ${wanted.join(' ')}`)
    return steps
  }
  const stepsOfPrimary = (state: State): [string, State][] => {
    const { known, acknowledged } = state
    const readable = [...state.earlier, state.electorate].filter(({ version }) => version > known.version)
    const steps: [string, State][] = readable.map(each => [
      `the primary reads version ${each.version}`,
      { ...state, known: each },
    ])
    if (known.version > acknowledged)
      steps.push([
        `the primary acknowledges version ${known.version}`,
        { ...state, acknowledged: known.version },
      ])
    return steps
  }
  const restartsOfPrimary = (state: State): [string, State][] => {
    const voters = state.voters.map(voter => ({ ...voter, answered: tooOld }))
    const readable = memory.electorates ? [state.known] : [...state.earlier, state.electorate]
    return readable.map(known => ['the sentinel of the primary is restarted', { ...state, voters, known }])
  }
  return {
    first: {
      ...{ voters, electorate, known: electorate, earlier: [], acknowledged: 1 },
      ...{ changesLeft: changes, rebootsLeft: reboots, isTaken: false },
    },
    steps: state => [
      ['time passes', { ...state, voters: state.voters.map(each => older(each, longEnough, tooOld)) }],
      ...restartsOfPrimary(state),
      ...state.voters.flatMap((voter, at) => stepsOfVoter(state, voter, at)),
      ...stepsOfOperator(state),
      ...stepsOfPrimary(state),
    ],
    key: state => keyOf(state, memory),
    wrong: state =>
      state.isTaken && isServing(state)
        ? `the primary serves by ${setsAsked(state.known)
            .map(set => set.join(' '))
            .join(' and ')} beside its successor`
        : undefined,
  }
}

/** Returns the lowest age for which this holds. */
function firstAge(holds: (age: number) => boolean): number {
  const age = Array.from({ length: 100 }, (_, at) => at).find(holds)
  if (age === undefined) throw new Error('no age is high enough')
  return age
}

/** True if an answer to a heartbeat that was sent then counts at 0, ms. */
const countsAt = (sentAt: number): boolean =>
  servesUntil({ version: 1, voters: [apiServer] }, new Map([[apiServer, sentAt]]), nodeTimeoutMs) > 0

const older = (voter: VoterState, longEnough: number, tooOld: number): VoterState => ({
  ...voter,
  heard: Math.min(voter.heard + 1, longEnough),
  answered: Math.min(voter.answered + 1, tooOld),
})

/** Every set with the API server and at least one holder that runs. */
function choices(voters: readonly VoterState[]): readonly (readonly Voter[])[] {
  const running = voters.filter(({ gone, holder }) => !gone && holder !== undefined).map(nameOf)
  const sets = Array.from({ length: 2 ** running.length - 1 }, (_, bits) =>
    running.filter((_, at) => ((bits + 1) >> at) & 1),
  )
  return sets.map(set => [apiServer, ...set])
}

/** Holders are alike: states in which they have only changed names are one. */
function keyOf({ voters, electorate, known, earlier, ...rest }: State, memory: Memory): string {
  const { acknowledged, changesLeft, rebootsLeft, isTaken } = rest
  const readable = memory.electorates ? earlier.filter(({ version }) => version > known.version) : earlier
  const sets = [electorate, known, ...readable].flatMap(({ voters: now, next }) => [now, next])
  const versions = [electorate, known, ...readable].map(({ version }) => version)
  const about = (voter: VoterState): string => {
    const { gone, hasVote, heard, answered, stated, told } = voter
    const name = nameOf(voter)
    const votes = sets.map(set => (set === undefined ? '-' : set.includes(name) ? 1 : 0)).join('')
    return `${gone ? 'g' : ''}${gone || stated || !hasVote ? '' : heard}${hasVote ? 'v' : ''}.${answered}.${stated ? 's' : ''}${told ? 't' : ''}.${votes}`
  }
  const holders = Map.groupBy(voters, ({ holder }) => holder)
  const names = [...holders].map(
    ([holder, runs]) => `${holder === undefined ? '!' : ''}${runs.map(about).join('+')}`,
  )
  return `${names.sort().join(' ')}|${versions.join()}|${acknowledged}|${changesLeft}|${rebootsLeft}|${isTaken ? 't' : ''}`
}
