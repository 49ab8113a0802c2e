import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { orDispose, type Started, start } from '../../../init-waker/testing/process.ts'

/** A line from the sentinel. */
export interface Line {
  readonly id: string
  readonly word: string
  readonly values: Readonly<Record<string, string>>
}

export type Values = Readonly<Record<string, string | number | readonly (string | number)[]>>

/** A connection to a sentinel. */
export interface Client {
  /** Sends a request and resolves with the reply. */
  ask(verb: string, values?: Values): Promise<Line>
  /** Sends a request without waiting; `reply` resolves later. */
  begin(verb: string, values?: Values): { readonly id: string; readonly reply: Promise<Line> }
  /** Sends raw bytes. */
  write(bytes: string | Uint8Array): void
  /** Resolves with a line that no other caller waits for. */
  line(of: (line: Line) => boolean): Promise<Line>
  /** Lines so far that no caller waited for: events, and answers to raw bytes. */
  readonly lines: readonly Line[]
  /** Resolves when the sentinel has closed the connection. */
  readonly closed: Promise<void>
  close(): Promise<void>
}

export interface Sentinel extends Started {
  readonly socket: string
  readonly directory: string
  /** Connects and sends `first`, by default its secret. */
  connect(first?: string): Promise<Client>
  /** Returns the number of open descriptors beyond those of an idle sentinel. */
  descriptors(): number
}

export interface SentinelOptions {
  readonly directory?: string
  readonly args?: readonly string[]
  /** A program and its arguments, which execute the sentinel in their place. */
  readonly by?: readonly string[]
}

/**
 * Starts a sentinel in the foreground that accepts requests. The end of the test kills it and removes its
 * directory.
 */
export async function startSentinel(program: string, options: SentinelOptions = {}): Promise<Sentinel> {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'sentinel-'))
  const socket = join(directory, 's')
  const [first = program, ...rest] = [...(options.by ?? []), program]
  const args = ['--foreground', '--socket', socket, ...(options.args ?? [])]
  const started = await start(first, [...rest, ...args])
  const sentinel: Sentinel = {
    ...started,
    socket,
    directory,
    connect: first => connect(socket, first),
    descriptors: () =>
      readdirSync(`/proc/${started.pid}/fd`).filter(fd =>
        /socket:|pidfd|pipe:/.test(linkOf(`/proc/${started.pid}/fd/${fd}`)),
      ).length,
    async [Symbol.asyncDispose]() {
      await started[Symbol.asyncDispose]()
      if (options.directory === undefined) rmSync(directory, { recursive: true, force: true })
    },
  }
  await orDispose(sentinel, untilItServes(started))
  return sentinel
}

async function untilItServes(started: Started): Promise<void> {
  let over = false
  void started.exit.then(() => {
    over = true
  })
  while (!started.stderr().includes('"msg":"sentinel"')) {
    if (over) throw new Error(`the sentinel did not start: ${started.stderr()}`)
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    // Closed since the listing.
    return ''
  }
}

export function encode(value: string | number): string {
  return Buffer.from(String(value)).reduce(
    (text, byte) =>
      text +
      (byte > 0x20 && byte < 0x7f && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).padStart(2, '0')}`),
    '',
  )
}

export function requestLine(id: string, verb: string, values: Values): string {
  const pairs = Object.entries(values).flatMap(([key, value]) =>
    (Array.isArray(value) ? value : [value]).map(one => ` ${key}=${encode(one as string | number)}`),
  )
  return `${id} ${verb}${pairs.join('')}\n`
}

function parse(text: string): Line {
  const [id = '', word = '', ...pairs] = text.split(' ')
  const values = pairs.map(pair => {
    const at = pair.indexOf('=')
    return [pair.slice(0, at), decodeURIComponent(pair.slice(at + 1))] as const
  })
  return { id, word, values: Object.fromEntries(values) }
}

/** Returns the secret that a client must send first. */
export const secretOf = (socket: string): string => readFileSync(`${socket}.secret`, 'utf8')

/**
 * Connects to a sentinel.
 *
 * @param first the first bytes to send; by default the secret.
 * @throws the error of the connect.
 */
export async function connect(path: string, first?: string): Promise<Client> {
  const socket = createConnection({ path })
  const waiting: { of: (line: Line) => boolean; take: (line: Line) => void }[] = []
  const lines: Line[] = []
  let rest = ''
  let next = 0
  const closed = new Promise<void>(resolve => socket.on('close', () => resolve()))
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('error', reject)
  })
  socket.on('error', () => {})
  socket.write(first ?? secretOf(path))
  socket.on('data', chunk => {
    rest += chunk.toString()
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      const line = parse(rest.slice(0, end))
      rest = rest.slice(end + 1)
      const at = waiting.findIndex(({ of }) => of(line))
      if (at < 0) lines.push(line)
      else waiting.splice(at, 1)[0]?.take(line)
    }
  })
  const line = (of: (line: Line) => boolean) => {
    const at = lines.findIndex(of)
    const there = at < 0 ? undefined : lines.splice(at, 1)[0]
    if (there !== undefined) return Promise.resolve(there)
    const coming = new Promise<Line>((take, reject) => {
      waiting.push({ of, take })
      void closed.then(() => reject(new Error('the sentinel closed the connection')))
    })
    // A caller that awaits it gets the rejection; without one it must not count as unhandled.
    coming.catch(() => {})
    return coming
  }
  const begin = (verb: string, values: Values = {}) => {
    const id = String(++next)
    const reply = line(one => one.id === id)
    socket.write(requestLine(id, verb, values))
    return { id, reply }
  }
  return {
    lines,
    line,
    begin,
    ask: (verb, values) => begin(verb, values).reply,
    write: bytes => {
      socket.write(bytes)
    },
    closed,
    close: () => {
      socket.destroy()
      return closed
    },
  }
}

/** Returns the start time of a process, field 22 of its stat. */
export function startTime(pid: number): string {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const field = text.slice(text.lastIndexOf(')') + 2).split(' ')[19]
  if (field === undefined) throw new Error(`process ${pid} has no start time`)
  return field
}

/** Returns `pid` and `start` of a process. */
export function processOf(pid: number): { pid: number; start: string } {
  return { pid, start: startTime(pid) }
}
