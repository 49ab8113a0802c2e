import { unlessAborted } from '../kube/abort.ts'
import type { Clock } from '../kube/clock.ts'
import { AgentError, isAgentError } from './errors.ts'
import { connectSentinel, type Pending, type SentinelConnection } from './sentinel-connection.ts'
import { type Field, field, type Line } from './sentinel-line.ts'

/** A process that no reused pid can be taken for: `start` is field 22 of /proc/PID/stat, clock ticks since boot. */
export interface ProcessRef {
  readonly pid: number
  readonly start: number
}

export interface SentinelHello {
  readonly version: string
  readonly pid: number
  readonly startedUnixNs: bigint
}

export interface SpawnRequest {
  /** Whose namespaces it runs in. */
  readonly target: ProcessRef
  /** `clone`: in a copy of the target's mount namespace; `apart`: also where its processes have no number for it. */
  readonly namespaces: 'keep' | 'clone' | 'apart'
  /** `join`: in the target's cgroups, so that what it restores belongs to them. */
  readonly cgroup: 'join' | 'stay'
  /** Its whole tree is killed after this many milliseconds. */
  readonly deadlineMs: number
  /** File of the host that takes its output. */
  readonly log: string
  readonly files: readonly {
    readonly fd: number
    readonly path: string
    /** Read, write, or a directory. */
    readonly mode: 'r' | 'w' | 'd'
  }[]
  readonly arguments: readonly string[]
  /** Name of a stop that is yet to come, which waits for its end; see `stop`. */
  readonly during?: string
  /** The rights that it has: those that its work takes (native/enter/rights.c), or those of the node's root. */
  readonly rights: 'Dump' | 'Restore' | 'Pages' | 'Files' | 'Everything'
  /** `NAME=value`, beside a PATH on which nothing is found. */
  readonly environment?: readonly string[]
}

export interface StopRequest {
  readonly name: string
  readonly deadlineMs: number
  /** Directories below /sys/fs/cgroup. */
  readonly cgroups: readonly string[]
  readonly exclude?: readonly number[]
  /** Files that the sentinel makes as soon as everything stands: gates of those who wait for it. */
  readonly gates?: readonly string[]
  /** Continued as soon as the work is done that it stands still for; absent: when that is said, or at the deadline. */
  readonly after?: {
    /** How many were spawned `during` it. All have to end with 0. */
    readonly spawns: number
    /** Files that say that there is more to do. */
    readonly unless: readonly string[]
    /** Directories of the host of which nothing is saved, so there must be nothing in them. */
    readonly empty: readonly string[]
    /** Pids of whoever must not have been told to end. */
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

/** Told at least once for each watch that ends; again after a reconnect until the watch is taken away. */
export interface Death {
  readonly name: string
  readonly unixNs: bigint
  readonly grave: 'none' | 'ready' | 'closed' | 'failed'
  /** From the death to the closed grave; undefined when the sentinel did not say. */
  readonly graveMicroseconds: number | undefined
}

export interface SentinelClient {
  hello(signal?: AbortSignal): Promise<SentinelHello>
  /** Resolves at its end. On an abort it is killed first, so that nothing runs on unseen. */
  spawn(request: SpawnRequest, signal?: AbortSignal): Promise<SpawnEnd>
  /**
   * Starts it for good: it ends by itself or at its deadline, whatever becomes of this client and of the sentinel. What is
   * returned lives as long as anything of it, and can be given to `treeKill`. Takes no signal: what was started unheard of
   * nobody would end.
   */
  spawnDetached(request: SpawnRequest): Promise<ProcessRef>
  /**
   * SIGSTOP to all processes of the cgroups until nobody new is found. The sentinel continues them by itself at the
   * deadline and when this client's connection ends, unless it is kept.
   */
  stop(
    request: StopRequest,
    signal?: AbortSignal,
  ): Promise<{ readonly count: number; readonly skewMicroseconds: number }>
  /**
   * What stands by this name stands for so long from now, whatever becomes of this client.
   * @returns false where nothing stands by this name.
   */
  keep(name: string, deadlineMs: number, signal?: AbortSignal): Promise<boolean>
  /** Whether what was stopped went on because its work was done; see `after`. */
  isDone(name: string): Promise<boolean>
  /** Takes no signal: what was stopped is continued whatever else is given up. */
  continue(name: string): Promise<{ readonly heldMicroseconds: number; readonly expired: boolean }>
  watch(name: string, process: ProcessRef, signal?: AbortSignal): Promise<void>
  /** Also forgets its grave. A name that is not watched is fine. */
  unwatch(name: string, signal?: AbortSignal): Promise<void>
  watches(signal?: AbortSignal): Promise<readonly Watched[]>
  /**
   * Prepares where connections go at the death of what is watched by this name, or says it anew. It stays closed for so
   * long after the death or the last `bury`; `lastsMs` absent: for ever.
   */
  grave(
    request: {
      readonly name: string
      /** A process of the pod; absent: its grave is there already, and gets another heir. */
      readonly netns?: ProcessRef
      readonly heir: string
      readonly lastsMs?: number
    },
    signal?: AbortSignal,
  ): Promise<void>
  /** Closes the grave now, whether the process lives or not. */
  bury(name: string, signal?: AbortSignal): Promise<{ readonly microseconds: number | undefined }>
  exhume(name: string, signal?: AbortSignal): Promise<void>
  /** Resolves when nothing of the tree is left, also when it was gone already. */
  treeKill(process: ProcessRef): Promise<{ readonly count: number }>
  treeContinue(process: ProcessRef): Promise<{ readonly count: number }>
  /** Calls back for every death heard of while `run` runs. Returns how to stop that. */
  onDeath(listener: (death: Death) => void): () => void
  /** Keeps a connection open, again and again, so that deaths are heard. Ends with the signal. */
  run(signal: AbortSignal): Promise<void>
  close(): void
}

export interface SentinelClientOptions {
  readonly path: string
  readonly clock: Clock
  readonly log: { warn(fields: object, message: string): void }
}

/** How long the sentinel may take for what it does at once. */
const promptMs = 10_000
const reconnectMs = 200

/**
 * Every method connects if there is no connection, and fails with AgentError SentinelUnavailable, SentinelLost,
 * SentinelRefused or ProcessGone, or with the reason of the signal.
 */
export function createSentinelClient(options: SentinelClientOptions): SentinelClient {
  const { path, clock, log } = options
  const listeners = new Set<(death: Death) => void>()
  const listings = new Set<(watched: Watched) => void>()
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
    // An unknown event is that of a newer sentinel, and nothing this client waits for.
  }
  const connection = (): Promise<SentinelConnection> => {
    connecting ??= connectSentinel({
      path,
      onEvent,
      onMalformed: text => log.warn({ text }, 'the sentinel sent what is no line of its protocol'),
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

  /** The reply, if its word is one of those; refusals and mismatched pids are thrown. */
  const expectReply = (line: Line, verb: string, ...words: readonly string[]): Line => {
    if (words.includes(line.word)) return line
    if (line.word === 'gone') throw new AgentError('ProcessGone', verb)
    throw new AgentError('SentinelRefused', `${verb}: ${line.word} ${field(line, 'reason') ?? ''}`.trim())
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
    async grave({ name, netns, heir, lastsMs }, signal) {
      const fields: Field[] = [
        ['name', name],
        ...(netns === undefined ? [] : processFields('netns', netns)),
        ['heir', heir],
        ...(lastsMs === undefined ? [] : [['lasts', String(lastsMs)] as const]),
      ]
      // `closed`: of who has died already; from now on connections go to this one.
      await ask('grave', fields, ['ready', 'closed'], signal)
    },
    async bury(name, signal) {
      const line = await ask('bury', [['name', name]], ['closed'], signal)
      return { microseconds: integer(field(line, 'us')) }
    },
    async exhume(name, signal) {
      await ask('exhume', [['name', name]], ['ok'], signal)
    },
    async treeKill(process) {
      const line = await ask('tree-kill', processFields('pid', process), ['gone'], undefined, promptMs * 3)
      return { count: integer(field(line, 'count')) ?? 0 }
    },
    async treeContinue(process) {
      const line = await ask('tree-continue', processFields('pid', process), ['continued'], undefined)
      return { count: number(line, 'count') }
    },
    onDeath(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async run(signal) {
      while (!signal.aborted) {
        try {
          const link = await connection()
          // Deaths that nobody heard of are told to whoever asks for the watches.
          await client.watches(signal)
          await unlessAborted(link.closed, signal)
        } catch (error) {
          if (signal.aborted) return
          if (!isAgentError(error)) throw error
          log.warn({ code: error.code, err: error }, 'no connection to the sentinel')
        }
        // A wait that the signal ends is the end of the loop, not a failure.
        await clock.sleep(reconnectMs, signal).catch(() => undefined)
      }
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
    // In the environment, as a sentinel of an earlier agent passes that on as well.
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

function processFields(key: string, process: ProcessRef): Field[] {
  return [
    [key, String(process.pid)],
    ['start', String(process.start)],
  ]
}

/** The end of a spawned tree; after an abort it is killed and its end is still waited for. */
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

/** @throws SentinelUnavailable when the reply does not come in time, and the reason of the signal. */
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
    // Both losers of the race reject now, and nobody is left to hear it.
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
