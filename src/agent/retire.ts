/** Removes everything that agents have put on a node. */
import { readlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { AgentError } from '../api/agent-errors.ts'
import type { Clock } from '../kube/clock.ts'
import type { Random } from '../kube/random.ts'
import { allPids, isGone, type ProcFs, statusOf } from './container/process.ts'
import { createForgottenConnections } from './forgotten-connections.ts'
import { installPrograms } from './sentinel/install.ts'
import { runOnHost } from './sentinel/on-host.ts'

export interface RetireOptions {
  readonly fs: ProcFs
  readonly clock: Clock
  readonly random: Random
  /** Directory of the programs in the agent's image. */
  readonly binaries: string
  /** Paths that are the same here and on the host. */
  readonly runDirectory: string
  readonly stateDirectory: string
  /** Name of the sentinel's cgroup. */
  readonly cgroup: string
  readonly signal: AbortSignal
}

const patienceMs = 15_000

/**
 * Leaves nothing on the node. No pod may depend on voters any more: see `unguardAll`. The sentinel ends, whatever its version, with its watches and its references to the
 * network namespaces of pods. Then the mounts are unmounted, and the directories are removed with their content: saved
 * memory, programs, and the agent's key. The node has its own settings of connection tracking again. The operation is idempotent, also after a crash.
 *
 * @throws AgentError NotRetired, BinariesMissing; the reason of the signal.
 */
export async function retire(options: RetireOptions): Promise<void> {
  const { fs, random, binaries, runDirectory, stateDirectory, cgroup, signal } = options
  await endPrograms(options)
  await createForgottenConnections(runDirectory).keep(new Set())
  // The host has no path to the image, and an earlier try may have removed the installed programs.
  const { directory } = await installPrograms({ from: binaries, to: join(stateDirectory, 'bin'), random })
  const command = [join(directory, 'sentinel'), 'remove', '--cgroup', cgroup, runDirectory, stateDirectory]
  const said = await runOnHost(directory, command, { fs, signal })
  if (!said.startsWith('exit 0;')) throw new AgentError('NotRetired', said)
}

/**
 * Sends SIGINT to sentinels, which end once their programs have ended, and leave nothing stopped: no other sentinel follows. No other process may be ended: pods may depend
 * on it.
 */
async function endPrograms(options: RetireOptions): Promise<void> {
  const { clock, signal } = options
  const until = clock.monotonic() + patienceMs
  const told = new Set<number>()
  for (;;) {
    const ours = await running(options)
    if (ours.length === 0) return
    const byPid = new Map(ours.map(it => [it.pid, it]))
    for (const { pid, parent, program } of ours) {
      // Its children of the same program look after the programs that it runs, and end with these.
      const isFirst = byPid.get(parent)?.program !== program
      if (basename(program) !== 'sentinel' || !isFirst || told.has(pid)) continue
      told.add(pid)
      end(pid)
    }
    if (clock.monotonic() > until)
      throw new AgentError('NotRetired', ours.map(({ pid, program }) => `${program} (${pid})`).join(', '))
    await clock.sleep(50, signal)
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGINT')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

interface Running {
  readonly pid: number
  readonly parent: number
  readonly program: string
}

/** Processes of this node that run programs from our directories. */
async function running({ fs, runDirectory, stateDirectory }: RetireOptions): Promise<readonly Running[]> {
  const found: Running[] = []
  for (const pid of await allPids(fs)) {
    try {
      const program = await readlink(`${fs.proc}/${pid}/exe`)
      if (![runDirectory, stateDirectory].some(directory => program.startsWith(`${directory}/bin/`))) continue
      const parent = Number((await statusOf(fs, pid))?.fields.get('PPid') ?? 0)
      found.push({ pid, parent, program })
    } catch (error) {
      // The process has ended, is a kernel thread, or has more rights than we and our programs: not one of ours.
      if (!isGone(error) && (error as NodeJS.ErrnoException).code !== 'EACCES') throw error
    }
  }
  return found
}
