/** The machine around a container, which a restore in it must not change. */
import { createHash } from 'node:crypto'
import { lstat, mkdir, readdir, readFile, readlink, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'

/** Lists the files below a directory with mode, owner and digest. */
async function filesOf(directory: string): Promise<string[]> {
  const found: string[] = []
  for (const name of (await readdir(directory, { recursive: true })).sort()) {
    const path = join(directory, name)
    const { mode, uid, gid, size } = await lstat(path)
    const digest =
      (mode & 0o170000) === 0o100000
        ? createHash('sha256')
            .update(await readFile(path))
            .digest('hex')
        : ''
    found.push(`${name} ${mode.toString(8)} ${uid}:${gid} ${size} ${digest}`)
  }
  return found
}

/** Lists the processes that run a program of a directory, by pid. */
async function runningFrom(directory: string): Promise<string[]> {
  const found: string[] = []
  for (const pid of (await readdir('/proc')).filter(name => /^\d+$/.test(name))) {
    const program = await readlink(`/proc/${pid}/exe`).catch(() => '')
    if (program.startsWith(directory)) found.push(`${pid} ${program}`)
  }
  return found
}

export interface Outside {
  /** Returns the comparable state of the machine. Clocks are rounded to half seconds. */
  state(): Promise<Readonly<Record<string, readonly string[]>>>
}

/**
 * @param programs of the node, that run in containers for a while.
 * @param directories of the node to which no process has a reason to write.
 */
export async function createOutside(
  scratch: string,
  programs: string,
  directories: readonly string[],
): Promise<Outside> {
  const canary = join(scratch, 'outside')
  await mkdir(canary)
  await writeFile(join(canary, 'f'), 'of the node', { mode: 0o640 })
  const clock = () => Date.now() - performance.now()
  const began = clock()
  return {
    async state() {
      const files = await Promise.all([canary, ...directories].map(filesOf))
      return {
        files: files.flat(),
        processes: await runningFrom(programs),
        // Other programs of the machine mount elsewhere.
        mounts: (await readFile('/proc/self/mountinfo', 'utf8'))
          .split('\n')
          .filter(it => it.includes(scratch)),
        limits: (await readFile('/proc/self/limits', 'utf8')).split('\n'),
        names: [hostname(), (await readFile('/proc/sys/kernel/core_pattern', 'utf8')).trim()],
        clock: [String(Math.round((clock() - began) / 500))],
      }
    },
  }
}
