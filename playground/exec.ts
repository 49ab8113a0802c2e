import { spawn } from 'node:child_process'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

export interface RunOptions {
  readonly signal?: AbortSignal | undefined
  readonly cwd?: string
  /** Added to this process's environment; undefined removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Written to the program's standard input. */
  readonly input?: string
  /** File that becomes the program's standard input. */
  readonly inputFile?: string
  /** File to which standard output and error are also appended; an error names it. */
  readonly logFile?: string
  /** Called with each line of standard error as it comes. */
  readonly onErrorLine?: (line: string) => void
}

/** A program failed: its argv, its exit, the path of its log and the log's last lines. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly argv: readonly string[]
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
  readonly logFile: string | undefined

  constructor(argv: readonly string[], end: CommandEnd, logFile: string | undefined) {
    const how = end.signal === null ? `ended with exit code ${end.code}` : `was killed by ${end.signal}`
    const tail = lastLines(end.stderr.trim() === '' ? end.stdout : end.stderr, 12)
    super(`${argv.join(' ').slice(0, 300)} ${how}${tail === '' ? '' : `\n${tail}`}`)
    this.argv = argv
    this.exitCode = end.code
    this.stdout = end.stdout
    this.stderr = end.stderr
    this.logFile = logFile
  }
}

export interface CommandEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/**
 * Runs a program to its end and returns its standard output. When `signal` fires, the program's whole process group is
 * killed and gone before this rejects.
 * @throws CommandError when the program fails, or the abort reason
 */
export async function run(argv: readonly string[], options: RunOptions = {}): Promise<string> {
  const end = await runToEnd(argv, options)
  options.signal?.throwIfAborted()
  if (end.code !== 0) throw new CommandError(argv, end, options.logFile)
  return end.stdout
}

/** Like `run`, but a nonzero exit code is a result, not an error. */
export async function runToEnd(argv: readonly string[], options: RunOptions = {}): Promise<CommandEnd> {
  const [program, ...args] = argv
  if (program === undefined) throw new Error('nothing to run')
  options.signal?.throwIfAborted()
  if (options.logFile !== undefined) await mkdir(dirname(options.logFile), { recursive: true })
  const log = options.logFile === undefined ? undefined : createWriteStream(options.logFile, { flags: 'a' })
  log?.write(`$ ${argv.join(' ')}\n`)
  const env: NodeJS.ProcessEnv = { ...process.env, LC_ALL: 'C.UTF-8', ...options.env }
  const hasInput = options.input !== undefined || options.inputFile !== undefined
  // Own process group: Ctrl-C in the terminal reaches only us, and we end the whole group.
  const child = spawn(program, args, {
    stdio: [hasInput ? 'pipe' : 'ignore', 'pipe', 'pipe'],
    detached: true,
    env: Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined)),
    ...(options.cwd !== undefined && { cwd: options.cwd }),
  })
  const kill = (): void => {
    if (child.pid === undefined) return
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
  options.signal?.addEventListener('abort', kill, { once: true })
  const closed = new Promise<CommandEnd>((resolve, reject) => {
    const stdout: Buffer[] = []
    const stderr: Buffer[] = []
    let partial = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      stdout.push(chunk)
      log?.write(chunk)
    })
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr.push(chunk)
      log?.write(chunk)
      if (options.onErrorLine === undefined) return
      const lines = (partial + chunk.toString()).split('\n')
      partial = lines.pop() ?? ''
      for (const line of lines) options.onErrorLine(line)
    })
    child.on('error', reject)
    child.on('close', (code, signal) => {
      resolve({
        code,
        signal,
        stdout: Buffer.concat(stdout).toString(),
        stderr: Buffer.concat(stderr).toString(),
      })
    })
  })
  try {
    await Promise.all([closed, feed(child.stdin, options)])
    return await closed
  } catch (error) {
    kill()
    throw error
  } finally {
    options.signal?.removeEventListener('abort', kill)
    log?.end()
  }
}

/**
 * The program ended, or closed its input, before it had read everything; its exit code says why. ECANCELED: its end was
 * noticed during a write.
 */
const unread: ReadonlySet<string> = new Set(['EPIPE', 'ECANCELED', 'ERR_STREAM_PREMATURE_CLOSE'])

async function feed(stdin: Writable | null, options: RunOptions): Promise<void> {
  if (stdin === null) return
  const source =
    options.inputFile === undefined
      ? Readable.from([options.input ?? ''])
      : createReadStream(options.inputFile)
  try {
    await pipeline(source, stdin)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (!unread.has(code)) throw error
  }
}

export function lastLines(text: string, count: number): string {
  return text.trimEnd().split('\n').slice(-count).join('\n')
}
