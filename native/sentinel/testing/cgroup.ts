import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs'
import { join, relative } from 'node:path'

const root = '/sys/fs/cgroup'

/** The reason why cgroups are unavailable here, or undefined if they work. */
export const cannotCgroup: string | undefined =
  process.getuid?.() !== 0
    ? 'needs root for cgroups'
    : hierarchies().length === 0
      ? 'needs cgroups below /sys/fs/cgroup'
      : undefined

/** Returns the directories of all hierarchies that accept processes. */
export function hierarchies(): readonly string[] {
  if (existsSync(join(root, 'cgroup.procs'))) return [root]
  if (!existsSync(root)) return []
  return readdirSync(root)
    .map(name => join(root, name))
    .filter(path => existsSync(join(path, 'cgroup.procs')))
}

/** A cgroup of one hierarchy. */
export interface Cgroup {
  readonly directory: string
  /** Relative to /sys/fs/cgroup, as the sentinel requires. */
  readonly path: string
  add(pid: number): void
  child(name: string): Cgroup
}

/** Creates a cgroup without limits in one hierarchy. Its processes must be gone before its disposal. */
export function createCgroup(hierarchy = hierarchies().at(-1) ?? root): Cgroup & Disposable {
  const cgroup = at(mkdtempSync(join(hierarchy, 'us-sentinel-')))
  return {
    ...cgroup,
    [Symbol.dispose]() {
      removeCgroup(cgroup.directory)
    },
  }
}

function at(directory: string): Cgroup {
  for (const name of ['cpuset.cpus', 'cpuset.mems']) inherit(directory, name)
  return {
    directory,
    path: relative(root, directory),
    add: pid => writeFileSync(join(directory, 'cgroup.procs'), String(pid)),
    child(name) {
      mkdirSync(join(directory, name))
      return at(join(directory, name))
    },
  }
}

/** A new cpuset of v1 is empty, so no process can join it. */
function inherit(directory: string, name: string): void {
  const file = join(directory, name)
  if (existsSync(file) && readFileSync(file, 'utf8').trim() === '')
    writeFileSync(file, readFileSync(join(directory, '..', name), 'utf8'))
}

/** Removes a cgroup with those in it, if it is there. */
export function removeCgroup(directory: string): void {
  if (!existsSync(directory)) return
  for (const entry of readdirSync(directory, { withFileTypes: true }))
    if (entry.isDirectory()) removeCgroup(join(directory, entry.name))
  rmdirSync(directory)
}
