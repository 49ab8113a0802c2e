// Long because it is the client of every verb of the sentinel.
import { AgentError, type AgentErrorCode, isAgentError } from '../../api/agent-errors.ts'
import type { Fence } from '../../api/fence.ts'
import { unlessAborted } from '../../kube/abort.ts'
import type { Clock } from '../../kube/clock.ts'
import type { ProcessRef } from '../container/process.ts'
import { connectSentinel, type Pending, type SentinelConnection } from './connection.ts'
import { type Field, field, type Line } from './line.ts'

export interface SentinelHello {
  readonly version: string
  readonly pid: number
  readonly startedUnixNs: bigint
}

export interface SpawnRequest {
  /** Process whose namespaces the program joins. */
  readonly target: ProcessRef
  /**
   * `clone`: with a copy of the target's mount namespace; `apart`: also outside the target's pid namespace, without a
   * pid there.
   */
  readonly namespaces: 'keep' | 'clone' | 'apart'
  /** `join`: in the target's cgroups, so that restored processes belong to them. */
  readonly cgroup: 'join' | 'stay'
  /** After this many milliseconds its whole tree is killed. */
  readonly deadlineMs: number
  /** File of the host for its output. */
  readonly log: string
  readonly files: readonly {
    readonly fd: number
    readonly path: string
    /** Read, write, or a directory. */
    readonly mode: 'r' | 'w' | 'd'
  }[]
  readonly arguments: readonly string[]
  /** Name of a later stop that waits for the end of this program; see `stop`. */
  readonly during?: string
  /** Rights of the program: those that its work needs (native/nsrun/rights.c), or those of the node's root. */
  readonly rights: 'Dump' | 'Restore' | 'Pages' | 'Track' | 'Files' | 'Everything'
  /** `NAME=value`, beside a PATH without any programs. */
  readonly environment?: readonly string[]
}

export interface StopRequest {
  readonly name: string
  readonly deadlineMs: number
  /** Directories below /sys/fs/cgroup. */
  readonly cgroups: readonly string[]
  readonly exclude?: readonly number[]
  /** Files that the sentinel creates once all processes are stopped: gates of programs that wait for that. */
  readonly gates?: readonly string[]
  /**
   * Resume as soon as the work is done for which the processes are stopped; absent: on `continue`, or at the deadline.
   */
  readonly after?: {
    /** Number of programs spawned `during` it. All have to end with 0. */
    readonly spawns: number
    /** Files that show that there is more to do. */
    readonly unless: readonly string[]
    /** Directories of the host that are not saved, so they must be empty. */
    readonly empty: readonly string[]
    /** Pids of processes that must not have a SIGTERM pending. */
    readonly ending: readonly number[]
  }
}

export interface SpawnEnd {
  /** Exit code; undefined when a signal ended it. */
  readonly code: number | undefined
  readonly signal: number | undefined
  readonly milliseconds: number
  /** It was killed at its deadline. */
  readonly expired: boolean
}

export interface Watched extends ProcessRef {
  readonly name: string
  readonly grave: 'none' | 'ready' | 'closed' | 'failed'
  /** Unix time of the death, nanoseconds; undefined while it lives. */
  readonly diedUnixNs: bigint | undefined
}

/** Sent at least once for each watched process that ends; again after a reconnect until the watch is removed. */
export interface Death {
  readonly name: string
  readonly unixNs: bigint
  readonly grave: 'none' | 'ready' | 'closed' | 'failed'
  /** From the death to the closed redirect; undefined if the sentinel did not say. */
  readonly graveMicroseconds: number | undefined
}

/** A pod here that has a slot, and its voters: see `Fence`. */
export interface GuardRequest extends Pick<Fence, 'term' | 'version' | 'timeoutMs' | 'voters' | 'next'> {
  /** Uid of the pod. */
  readonly name: string
  /** Name of its slot with the incarnation. */
  readonly slot: string
  /** A process of the pod. Its packets pass only while the pod may serve. */
  readonly netns: ProcessRef
  /** Directories below /sys/fs/cgroup. Everything that runs in them, now or later, is stopped while the pod may not serve. */
  readonly cgroups: readonly string[]
}

/** A slot of another node, for which this node is a voter. */
export interface VoteRequest extends Pick<Fence, 'term' | 'timeoutMs'> {
  readonly slot: string
  /** Node of the primary, with the run of its sentinel. */
  readonly node: string
  readonly run: string
  /** It gets no answers in this term: this node states that it is silent when its last heartbeat is old enough. */
  readonly isDenied: boolean
}

export interface HeartbeatPeer {
  readonly name: string
  readonly address: string
  readonly port: number
  readonly run: string
  /** 64 hex digits. Never log it. */
  readonly key: string
}

/** News of the sentinel about primaries and votes. */
export type VotingNews =
  /** `stops`: it has too few answers, and is stopped until it has them again. */
  | { readonly type: 'serves' | 'stops'; readonly name: string; readonly term: number }
  /** It has too few recent answers of nodes: an answer of the API server is wanted. Sent again while that lasts. */
  | { readonly type: 'alone'; readonly name: string; readonly term: number }
  /** This node has stated that the primary of that term is silent, and answers it no more. */
  | { readonly type: 'silent'; readonly slot: string; readonly term: number }
  /** `suspect`: this node will state that soon, unless it hears a heartbeat; it promises nothing. `trust`: it has heard one. */
  | { readonly type: 'suspect' | 'trust'; readonly slot: string; readonly term: number }

export interface SentinelClient {
  hello(signal?: AbortSignal): Promise<SentinelHello>
  /** Resolves at the end of the program. An abort kills it first, so that no process keeps running unseen. */
  spawn(request: SpawnRequest, signal?: AbortSignal): Promise<SpawnEnd>
  /**
   * Starts a program that ends by itself or at its deadline, whatever happens to this client and to the sentinel. The
   * returned process lives as long as any process of the program, and can be given to `treeKill`. Takes no signal: no
   * client would end a program whose start was not reported.
   */
  spawnDetached(request: SpawnRequest): Promise<ProcessRef>
  /**
   * Sends SIGSTOP to all processes of the cgroups until no new process is found. The sentinel itself resumes them at
   * the deadline and when this client's connection ends, unless the stop is kept.
   *
   * @throws AgentError Fenced: the pod may not serve now, and is stopped already.
   */
  stop(
    request: StopRequest,
    signal?: AbortSignal,
  ): Promise<{ readonly count: number; readonly skewMicroseconds: number }>
  /**
   * Extends the stop with this name to so long from now, whatever happens to this client.
   * @returns false if there is no such stop.
   */
  keep(name: string, deadlineMs: number, signal?: AbortSignal): Promise<boolean>
  /** Whether the processes were resumed because their work was done; see `after`. */
  isDone(name: string): Promise<boolean>
  /** Resumes the processes of a stop. Takes no signal: they must run again whatever else is cancelled. */
  continue(name: string): Promise<{ readonly heldMicroseconds: number; readonly expired: boolean }>
  watch(name: string, process: ProcessRef, signal?: AbortSignal): Promise<void>
  /** Also removes its redirect. A name that is not watched is no error. */
  unwatch(name: string, signal?: AbortSignal): Promise<void>
  watches(signal?: AbortSignal): Promise<readonly Watched[]>
  /**
   * Prepares or changes the redirect of a watched process: the target of connections after its death. The redirect is
   * in effect for `lastsMs` after the death or the last call of `redirect`; absent: without limit.
   */
  prepareRedirect(
    request: {
      readonly name: string
      /** A process of the pod; absent: the redirect exists already, and gets another heir. */
      readonly netns?: ProcessRef
      readonly heir: string
      readonly lastsMs?: number
    },
    signal?: AbortSignal,
  ): Promise<void>
  /** Puts the redirect into effect now, whether the process lives or not. */
  redirect(name: string, signal?: AbortSignal): Promise<{ readonly microseconds: number | undefined }>
  undoRedirect(name: string, signal?: AbortSignal): Promise<void>
  /**
   * Refuses the clients that redirects of these pods lead into the network of this process, until another list replaces this one. Programs
   * in these pods may still connect to it.
   * @param from addresses, 64 at most.
   */
  keepOut(netns: ProcessRef, from: readonly string[], signal?: AbortSignal): Promise<void>
  /** Resolves when no process of the tree is left, also if it was gone already. */
  treeKill(process: ProcessRef): Promise<{ readonly count: number }>
  treeContinue(process: ProcessRef): Promise<{ readonly count: number }>
  /** Begins to listen for heartbeats. @returns the port, and the run of this sentinel. */
  heartbeats(port: number, signal?: AbortSignal): Promise<{ readonly port: number; readonly run: string }>
  /** Adds another node, or changes what is known of it. */
  addPeer(peer: HeartbeatPeer, signal?: AbortSignal): Promise<void>
  removePeer(name: string, signal?: AbortSignal): Promise<void>
  /**
   * Lets a pod serve only while its voters answer. When this resolves, the sentinel has acknowledged the version, and will
   * ask these voters also after its own restart. In a new term that waits for enough answers. It is refused while another
   * pod of the slot is guarded.
   *
   * @throws AgentError NoAnswers after `timeoutMs`: too few of the voters answer, and nothing has changed.
   */
  guard(request: GuardRequest, signal?: AbortSignal): Promise<void>
  /**
   * The pod serves without voters from now on, or is gone. A name that is not guarded is no error.
   *
   * @param isShut no packet that its processes have left in the kernel may leave: its slot is another pod's.
   */
  unguard(name: string, signal?: AbortSignal, isShut?: boolean): Promise<void>
  /**
   * Tells that the API server has answered.
   *
   * @param run that of the voter, see `apiServerVoter`.
   * @param sentNs when the write was sent that it has taken, `process.hrtime.bigint()`.
   * @returns false if the sentinel does not guard this pod in this term.
   */
  answered(
    request: { readonly name: string; readonly term: number; readonly run: string; readonly sentNs: bigint },
    signal?: AbortSignal,
  ): Promise<boolean>
  vote(request: VoteRequest, signal?: AbortSignal): Promise<void>
  /** A statement that was made stays, and is not told again. */
  unvote(slot: string, signal?: AbortSignal): Promise<void>
  /**
   * Has the listeners told of the state of each primary and of each statement, before it resolves. A sentinel of an earlier
   * version has none.
   */
  tellVotes(signal?: AbortSignal): Promise<void>
  /** Calls the listener for all news of the sentinel while `run` runs. Returns a function that removes it. */
  onVoting(listener: (news: VotingNews) => void): () => void
  /** Calls the listener for every death that is reported while `run` runs. Returns a function that removes it. */
  onDeath(listener: (death: Death) => void): () => void
  /** Keeps a connection open and reconnects, so that deaths are heard. Ends with the signal. */
  run(signal: AbortSignal): Promise<void>
  /** Resolves when the connection to the sentinel has ended, or no sentinel listens. @throws the signal's reason */
  lost(signal: AbortSignal): Promise<void>
  close(): void
}

export interface SentinelClientOptions {
  readonly path: string
  readonly clock: Clock
  readonly log: { warn(fields: object, message: string): void }
}

/** Time for requests that the sentinel fulfils at once. */
const promptMs = 10_000

const reconnectMs = 200

/** Refusals that have a reason of their own in the catalogue. */
const refusals: Readonly<Record<string, AgentErrorCode>> = { fenced: 'Fenced', 'no-answers': 'NoAnswers' }

/**
 * Creates a client of the sentinel. Every method connects if there is no connection, and fails with AgentError
 * SentinelUnavailable, SentinelLost, SentinelRefused or ProcessGone, or with the reason of the signal.
 */
export function createSentinelClient(options: SentinelClientOptions): SentinelClient {
  const { path, clock, log } = options
  const listeners = new Set<(death: Death) => void>()
  const listings = new Set<(watched: Watched) => void>()
  const voting = new Set<(news: VotingNews) => void>()
  let connecting: Promise<SentinelConnection> | undefined

  const tell = (death: Death) => {
    for (const listener of listeners) listener(death)
  }
  const onEvent = (line: Line) => {
    const watched = line.word === 'watch' ? watchedOf(line) : undefined
    if (watched !== undefined) {
      for (const listing of listings) listing(watched)
      if (watched.diedUnixNs !== undefined)
        tell({ ...watched, unixNs: watched.diedUnixNs, graveMicroseconds: undefined })
    }
    const death = line.word === 'died' ? deathOf(line) : undefined
    if (death !== undefined) tell(death)
    const news = votingOf(line)
    if (news !== undefined) for (const listener of voting) listener(news)
    // An unknown event comes from a newer sentinel, and this client does not wait for it.
  }
  const connection = (): Promise<SentinelConnection> => {
    connecting ??= connectSentinel({
      path,
      onEvent,
      onMalformed: text => log.warn({ text }, 'malformed line from the sentinel'),
    }).then(
      made => {
        void made.closed.then(() => {
          connecting = undefined
        })
        return made
      },
      (error: unknown) => {
        connecting = undefined
        throw error
      },
    )
    return connecting
  }

  /** Returns the reply if its word is one of these; throws refusals and mismatched pids. */
  const expectReply = (line: Line, verb: string, ...words: readonly string[]): Line => {
    if (words.includes(line.word)) return line
    if (line.word === 'gone') throw new AgentError('ProcessGone', verb)
    const reason = field(line, 'reason') ?? ''
    throw new AgentError(refusals[reason] ?? 'SentinelRefused', `${verb}: ${line.word} ${reason}`.trim())
  }
  const ask = async (
    verb: string,
    fields: readonly Field[],
    words: readonly string[],
    signal: AbortSignal | undefined,
    milliseconds = promptMs,
  ): Promise<Line> => {
    signal?.throwIfAborted()
    const { reply } = (await connection()).request(verb, fields)
    return expectReply(await within(reply, verb, clock, milliseconds, signal), verb, ...words)
  }

  const client: SentinelClient = {
    async hello(signal) {
      const line = await ask('hello', [], ['ok'], signal)
      return {
        version: text(line, 'version'),
        pid: number(line, 'pid'),
        startedUnixNs: bigint(line, 'started_unix_ns'),
      }
    },
    async spawn(request, signal) {
      signal?.throwIfAborted()
      const link = await connection()
      const pending = link.request('spawn', spawnFields(request))
      const line = await ending(pending, link, signal, request.deadlineMs + promptMs, clock)
      expectReply(line, 'spawn', 'exited')
      const code = integer(field(line, 'code'))
      const signalled = integer(field(line, 'signal'))
      return {
        code: signalled === undefined || signalled === 0 ? code : undefined,
        signal: signalled === 0 ? undefined : signalled,
        milliseconds: integer(field(line, 'ms')) ?? 0,
        expired: field(line, 'expired') === '1',
      }
    },
    async spawnDetached(request) {
      const fields: Field[] = [...spawnFields(request), ['detach', '1']]
      const line = await ask('spawn', fields, ['started'], undefined)
      return { pid: number(line, 'pid'), start: number(line, 'start') }
    },
    async stop({ name, deadlineMs, cgroups, exclude = [], gates = [], after }, signal) {
      const fields: Field[] = [
        ['name', name],
        ['deadline', String(deadlineMs)],
        ...cgroups.map((cgroup): Field => ['cgroup', cgroup]),
        ...exclude.map((pid): Field => ['exclude', String(pid)]),
        ...gates.map((path): Field => ['go', path]),
        ...(after === undefined ? [] : afterFields(after)),
      ]
      const line = await ask('stop', fields, ['stopped'], signal)
      return { count: number(line, 'count'), skewMicroseconds: number(line, 'skew_us') }
    },
    async keep(name, deadlineMs, signal) {
      const fields: Field[] = [
        ['name', name],
        ['deadline', String(Math.ceil(deadlineMs))],
      ]
      return (await ask('keep', fields, ['kept', 'absent'], signal)).word === 'kept'
    },
    async isDone(name) {
      const line = await ask('stop-state', [['name', name]], ['done', 'held', 'expired'], undefined)
      return line.word === 'done'
    },
    async continue(name) {
      const line = await ask('continue', [['name', name]], ['continued'], undefined)
      return { heldMicroseconds: number(line, 'held_us'), expired: field(line, 'expired') === '1' }
    },
    async watch(name, process, signal) {
      await ask('watch', [['name', name], ...processFields('pid', process)], ['watching'], signal)
    },
    async unwatch(name, signal) {
      await ask('unwatch', [['name', name]], ['ok'], signal)
    },
    async watches(signal) {
      const found: Watched[] = []
      const listing = (watched: Watched) => found.push(watched)
      listings.add(listing)
      try {
        await ask('watches', [], ['ok'], signal)
      } finally {
        listings.delete(listing)
      }
      return found
    },
    async prepareRedirect({ name, netns, heir, lastsMs }, signal) {
      const fields: Field[] = [
        ['name', name],
        ...(netns === undefined ? [] : processFields('netns', netns)),
        ['heir', heir],
        ...(lastsMs === undefined ? [] : [['lasts', String(lastsMs)] as const]),
      ]
      // `closed`: the process has died already; from now on connections go to this heir.
      await ask('grave', fields, ['ready', 'closed'], signal)
    },
    async redirect(name, signal) {
      const line = await ask('bury', [['name', name]], ['closed'], signal)
      return { microseconds: integer(field(line, 'us')) }
    },
    async undoRedirect(name, signal) {
      await ask('exhume', [['name', name]], ['ok'], signal)
    },
    async keepOut(netns, from, signal) {
      const fields = [...processFields('netns', netns), ...from.map((address): Field => ['from', address])]
      await ask('strangers', fields, ['ok'], signal)
    },
    async treeKill(process) {
      const line = await ask('tree-kill', processFields('pid', process), ['gone'], undefined, promptMs * 3)
      return { count: integer(field(line, 'count')) ?? 0 }
    },
    async treeContinue(process) {
      const line = await ask('tree-continue', processFields('pid', process), ['continued'], undefined)
      return { count: number(line, 'count') }
    },
    async heartbeats(port, signal) {
      const line = await ask('heartbeats', [['port', String(port)]], ['listening'], signal)
      return { port: number(line, 'port'), run: text(line, 'run') }
    },
    async addPeer({ name, address, port, run, key }, signal) {
      const fields: Field[] = [
        ['name', name],
        ['address', address],
        ['port', String(port)],
        ['run', run],
        ['key', key],
      ]
      await ask('peer', fields, ['ok'], signal)
    },
    async removePeer(name, signal) {
      await ask('unpeer', [['name', name]], ['ok'], signal)
    },
    async guard({ name, slot, term, version, timeoutMs, voters, next = [], netns, cgroups }, signal) {
      const fields: Field[] = [
        ['name', name],
        ['slot', slot],
        ...termFields(term, timeoutMs),
        ['version', String(version)],
        ...voters.map((voter): Field => ['voter', voter]),
        ...next.map((voter): Field => ['next', voter]),
        ...processFields('netns', netns),
        ...cgroups.map((cgroup): Field => ['cgroup', cgroup]),
      ]
      // The sentinel waits for answers of the voters first.
      await ask('primary', fields, ['ok'], signal, promptMs + timeoutMs)
    },
    async unguard(name, signal, isShut = false) {
      const fields: Field[] = [['name', name], ...(isShut ? [['shut', 'yes'] satisfies Field] : [])]
      await ask('unprimary', fields, ['ok'], signal)
    },
    async answered({ name, term, run, sentNs }, signal) {
      const fields: Field[] = [
        ['name', name],
        ['epoch', String(term)],
        ['run', run],
        ['sent', String(sentNs)],
      ]
      return (await ask('answered', fields, ['ok', 'absent'], signal)).word === 'ok'
    },
    async vote({ slot, term, node, run, timeoutMs, isDenied }, signal) {
      const fields: Field[] = [
        ['slot', slot],
        ...termFields(term, timeoutMs),
        ['node', node],
        ['run', run],
        ...(isDenied ? [['deny', '1'] as const] : []),
      ]
      await ask('vote', fields, ['ok'], signal)
    },
    async unvote(slot, signal) {
      await ask('unvote', [['slot', slot]], ['ok'], signal)
    },
    async tellVotes(signal) {
      await ask('votes', [], ['ok'], signal).catch((error: unknown) => {
        if (!isAgentError(error, 'SentinelRefused')) throw error
      })
    },
    onVoting(listener) {
      voting.add(listener)
      return () => voting.delete(listener)
    },
    onDeath(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async run(signal) {
      while (!signal.aborted) {
        try {
          const link = await connection()
          // The sentinel repeats deaths that no client has heard of to a client that asks for the watches.
          await client.watches(signal)
          await client.tellVotes(signal)
          await unlessAborted(link.closed, signal)
        } catch (error) {
          if (signal.aborted) return
          if (!isAgentError(error)) throw error
          log.warn({ code: error.code, err: error }, 'cannot connect to the sentinel')
        }
        // A wait that the signal ends is the end of the loop, not a failure.
        await clock.sleep(reconnectMs, signal).catch(() => undefined)
      }
    },
    async lost(signal) {
      const link = await connection().catch(() => undefined)
      if (link !== undefined) await unlessAborted(link.closed, signal)
    },
    close() {
      void connecting?.then(
        link => link.close(),
        () => undefined,
      )
    },
  }
  return client
}

function spawnFields(request: SpawnRequest): Field[] {
  return [
    ...processFields('target', request.target),
    ['ns', request.namespaces],
    ['cgroup', request.cgroup],
    ['deadline', String(request.deadlineMs)],
    ['log', request.log],
    ...(request.during === undefined ? [] : [['during', request.during] as const]),
    ...request.files.map(({ fd, path, mode }): Field => [`fd${fd}`, `${path}:${mode}`]),
    // In the environment, which a sentinel of an earlier agent passes on as well.
    ...(request.rights === 'Everything'
      ? []
      : [['env', `UNDERSTUDY_FOR=${request.rights.toLowerCase()}`] as const]),
    ...(request.environment ?? []).map((variable): Field => ['env', variable]),
    ...request.arguments.map((argument): Field => ['arg', argument]),
  ]
}

function afterFields({ spawns, unless, empty, ending }: NonNullable<StopRequest['after']>): Field[] {
  return [
    ['after', String(spawns)],
    ...unless.map((path): Field => ['unless', path]),
    ...empty.map((path): Field => ['empty', path]),
    ...ending.map((pid): Field => ['ending', String(pid)]),
  ]
}

/** The sentinel and the rule call the term of a slot its epoch. */
const termFields = (term: number, timeoutMs: number): readonly Field[] => [
  ['epoch', String(term)],
  ['timeout', String(timeoutMs)],
]

function processFields(key: string, process: ProcessRef): Field[] {
  return [
    [key, String(process.pid)],
    ['start', String(process.start)],
  ]
}

/** Waits for the end of a spawned tree. After an abort it is killed, and its end is still awaited. */
async function ending(
  pending: Pending,
  link: SentinelConnection,
  signal: AbortSignal | undefined,
  milliseconds: number,
  clock: Clock,
): Promise<Line> {
  const kill = () =>
    void link.request('kill-spawn', [['spawn', String(pending.id)]]).reply.catch(() => undefined)
  signal?.addEventListener('abort', kill, { once: true })
  try {
    const line = await within(pending.reply, 'spawn', clock, milliseconds, undefined)
    signal?.throwIfAborted()
    return line
  } finally {
    signal?.removeEventListener('abort', kill)
  }
}

/** @throws SentinelUnavailable if the reply does not come in time; the reason of the signal. */
async function within<T>(
  reply: Promise<T>,
  verb: string,
  clock: Clock,
  milliseconds: number,
  signal: AbortSignal | undefined,
): Promise<T> {
  const done = new AbortController()
  const late = clock
    .sleep(milliseconds, done.signal)
    .then(() =>
      Promise.reject(new AgentError('SentinelUnavailable', `${verb}: no reply in ${milliseconds} ms`)),
    )
  try {
    const first = Promise.race([reply, late])
    return await unlessAborted(first, signal)
  } finally {
    // Both losers of the race reject now, without a listener.
    late.catch(() => undefined)
    reply.catch(() => undefined)
    done.abort()
  }
}

function watchedOf(line: Line): Watched | undefined {
  const name = field(line, 'name')
  const pid = integer(field(line, 'pid'))
  const start = integer(field(line, 'start'))
  const died = field(line, 'died') ?? '0'
  if (name === undefined || pid === undefined || start === undefined || !/^\d{1,20}$/.test(died))
    return undefined
  return { name, pid, start, grave: graveOf(line), diedUnixNs: died === '0' ? undefined : BigInt(died) }
}

function votingOf(line: Line): VotingNews | undefined {
  const { word } = line
  const [name, slot, term] = [field(line, 'name'), field(line, 'slot'), integer(field(line, 'epoch'))]
  if (term === undefined) return undefined
  if (word === 'silent' || word === 'suspect' || word === 'trust')
    return slot === undefined ? undefined : { type: word, slot, term }
  if (word !== 'serves' && word !== 'stops' && word !== 'alone') return undefined
  return name === undefined ? undefined : { type: word, name, term }
}

function deathOf(line: Line): Death | undefined {
  const name = field(line, 'name')
  const at = field(line, 'at_unix_ns')
  if (name === undefined || at === undefined || !/^\d{1,20}$/.test(at)) return undefined
  return {
    name,
    unixNs: BigInt(at),
    grave: graveOf(line),
    graveMicroseconds: integer(field(line, 'grave_us')),
  }
}

function graveOf(line: Line): Watched['grave'] {
  const value = field(line, 'grave')
  return value === 'ready' || value === 'closed' || value === 'failed' ? value : 'none'
}

function integer(value: string | undefined): number | undefined {
  return value !== undefined && /^-?\d{1,15}$/.test(value) ? Number(value) : undefined
}

function number(line: Line, key: string): number {
  const value = integer(field(line, key))
  if (value === undefined) throw new AgentError('SentinelRefused', `a reply without ${key}`)
  return value
}

function bigint(line: Line, key: string): bigint {
  const value = text(line, key)
  if (!/^\d{1,20}$/.test(value)) throw new AgentError('SentinelRefused', `a reply without ${key}`)
  return BigInt(value)
}

function text(line: Line, key: string): string {
  const value = field(line, key)
  if (value === undefined) throw new AgentError('SentinelRefused', `a reply without ${key}`)
  return value
}
