/** Objects of running processes that CRIU cannot save, or cannot restore in another pod, and their remedies. */

const entry = (what: string, cure: string) => ({ what, cure })

export const obstacles = Object.freeze({
  IoUring: entry(
    'an io_uring',
    'leave seccomp at RuntimeDefault, which forbids it so that programs fall back, or turn it off in the program (Node.js: UV_USE_IO_URING=0)',
  ),
  Mptcp: entry(
    'an MPTCP socket',
    'turn it off in the program (Go: GODEBUG=multipathtcp=0 in the environment, or ListenConfig.SetMultipathTCP(false))',
  ),
  ForeignSocket: entry('a socket of a protocol that cannot be saved', 'use TCP, UDP or unix sockets'),
  SystemV: entry(
    'System V shared memory, semaphores or message queues',
    'use the POSIX kind (PostgreSQL keeps one segment even with shared_memory_type = mmap; keep such a program in a container that is not saved)',
  ),
  Device: entry(
    'a device',
    'keep the program that uses it in a container that is not saved (checkpoint.containers)',
  ),
  Terminal: entry('a terminal', 'start the program without one'),
  KernelObject: entry(
    'an object of the kernel that cannot be saved',
    'avoid it, or keep the program in a container that is not saved (checkpoint.containers)',
  ),
  Namespace: entry(
    'a namespace of its own',
    "turn the program's sandbox off (Chromium: --no-sandbox), or keep it in a container that is not saved",
  ),
  Traced: entry('a debugger on it', 'stop the debugger'),
  ProcFile: entry(
    'a file or directory of /proc open',
    'let the program close it after reading; in a successor it would refer to other processes',
  ),
  TooMany: entry(
    'more than the agent inspects',
    'let the program close files that it does not need, or keep it in a container that is not saved (checkpoint.containers)',
  ),
  LargeDeletedFile: entry(
    'a deleted file that is open and too large',
    'let the program close deleted files, or keep them below 64 MiB',
  ),
  LinkedDeletedFile: entry(
    'an open file that was deleted and has another name left',
    'let the program open it again by that name',
  ),
})

export type ObstacleKind = keyof typeof obstacles

export interface Obstacle {
  readonly kind: ObstacleKind
  /** Name of the container. */
  readonly container: string
  /** The pid in this node's initial pid namespace. */
  readonly pid: number
  /** The program's name and the object found: names, numbers and paths only. */
  readonly detail: string
}

const shown = 3

/** Describes all obstacles in one line, with the cure of each kind once. */
export function describeObstacles(found: readonly Obstacle[]): string {
  const kinds = [...new Set(found.map(({ kind }) => kind))]
  return kinds
    .map(kind => {
      const all = found.filter(it => it.kind === kind)
      const [first] = all
      const details = [...new Set(all.map(({ detail }) => detail))]
      const more = details.length > shown ? ` and ${details.length - shown} more` : ''
      return `container ${first?.container} has ${obstacles[kind].what} (${details.slice(0, shown).join(', ')}${more}): ${obstacles[kind].cure}`
    })
    .join('; ')
}
