import { spawn } from 'node:child_process'
import { chmod, copyFile, mkdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { orderHead } from '../../init-waker/testing/hold.ts'
import { exchange } from '../../init-waker/testing/peer.ts'
import { childrenOf, start, statusField } from '../../init-waker/testing/process.ts'
import { eventually } from '../../test/support/eventually.ts'

/** A process as `nsrun` names it: the start time guards against a reused pid. */
export interface Target {
  readonly pid: number
  readonly start: string
}

export interface Container extends Target {
  /** Has `lower`, `upper` and `root` of its overlay. */
  readonly directory: string
  /** Returns its standard output so far. */
  log(): string
  readonly exit: Promise<number>
  [Symbol.asyncDispose](): Promise<void>
}

export interface ContainerOptions {
  readonly tools: string
  /** A new directory. */
  readonly directory: string
  /** Programs of this machine to copy into its root directory. */
  readonly programs: readonly string[]
  readonly command: readonly string[]
  readonly user?: number
  /** Arguments of the helper `strict`. */
  readonly strict?: readonly string[]
}

/** Starts a container of `test-container` whose `/orders` is a volume. */
export async function startContainer(options: ContainerOptions): Promise<Container> {
  const { tools, directory, programs, command, user } = options
  const volume = join(directory, 'orders')
  await mkdir(join(directory, 'lower'), { recursive: true })
  await mkdir(volume)
  // Overrides the umask: the container may have any user.
  await chmod(volume, 0o777)
  for (const program of programs)
    await copyFile(program, join(directory, 'lower', program.split('/').at(-1) ?? ''))
  const pidFile = join(directory, 'pid')
  const started = await start(join(tools, 'test-container'), [
    ...['run', '--dir', directory, '--pid-file', pidFile, '--volume', `${volume}:/orders`],
    ...(user === undefined ? [] : ['--user', String(user)]),
    ...['--', ...command],
  ])
  const pid = await eventually(async () => {
    const found = Number(await readFile(pidFile, 'utf8'))
    // Wait until `test-container` has executed the program itself.
    if (!(await readlink(`/proc/${found}/exe`)).endsWith(command[0] ?? '')) throw new Error('not yet')
    return found
  })
  const container = {
    ...(await targetOf(pid)),
    directory,
    log: started.stdout,
    exit: started.exit,
    async [Symbol.asyncDispose]() {
      try {
        process.kill(pid, 'SIGKILL')
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
      }
      await started.exit
    },
  }
  for (const way of options.strict ?? []) {
    const done = await enter(tools, container, 'keep', ['/proc/self/fd/200/strict', way])
    if (done.code !== 0) throw new Error(done.stderr)
  }
  return container
}

export async function targetOf(pid: number): Promise<Target> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  return {
    pid,
    start:
      stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .at(19) ?? '',
  }
}

export interface Done {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/**
 * Runs a program through `nsrun` with the tools open as 200 and other files as given ("<" or ">" and the
 * path).
 */
export function enter(
  tools: string,
  target: Target,
  mode: string,
  command: readonly string[],
  files: Readonly<Record<number, string>> = {},
  environment: Readonly<Record<string, string>> = {},
): Promise<Done> {
  const open = Object.entries({ 200: `<${tools}`, ...files }).map(
    ([fd, it]) => `${fd}${it[0]}'${it.slice(1)}'`,
  )
  const script = `exec ${open.join(' ')}; exec "$0" "$@"`
  const args = ['-c', script, join(tools, 'nsrun'), `${target.pid}:${target.start}`, mode, '--', ...command]
  return new Promise((resolve, reject) => {
    // Only bash opens descriptors of three digits.
    const child = spawn('bash', args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...environment },
    })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString()
    })
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
    })
    child.on('error', reject)
    child.on('close', code => resolve({ code: code ?? -1, stdout, stderr }))
  })
}

/** Resolves with the answer of the container's counter to a request from within its network. */
export async function ask(target: Target, path = '/'): Promise<{ count: number; startedAt: number }> {
  const script = `fetch('http://127.0.0.1:8080${path}').then(it => it.text()).then(it => console.log(it))`
  const asked = await start('nsenter', ['-t', String(target.pid), '-n', process.execPath, '-e', script])
  const code = await asked.exit
  if (code !== 0) throw new Error(asked.stderr())
  return JSON.parse(asked.stdout()) as { count: number; startedAt: number }
}

/** Gives the container's `hold` an order and resolves with the word and the number of the reply. */
export async function order(hold: Container, text: string): Promise<string> {
  const reply = await exchange(
    { path: join(hold.directory, 'orders/hold.sock') },
    `${orderHead(join(hold.directory, 'orders'))}${text}\n`,
  )
  return reply.split(' ').slice(1, 3).join(' ')
}

/** Returns the child of the container's first process that has the given pid inside. */
export async function childOf(container: Target, pidInside: number): Promise<Target> {
  const found = childrenOf(container.pid).find(
    pid => statusField(pid, 'NSpid')?.split(/\s+/)[1] === String(pidInside),
  )
  if (found === undefined) throw new Error(`no child ${pidInside}`)
  return targetOf(found)
}
