import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { ArtifactName } from './artifacts/artifacts.ts'
import { clusterPaths } from './paths.ts'
import { type ClusterPlan, planCluster } from './plan.ts'
import type { ProcessIdentity } from './process.ts'

/** The processes whose life is the machine's life, as this machine's pids. */
export interface MachineProcesses {
  /** unshare(1); `init` dies with it. */
  readonly outer: ProcessIdentity
  /** Process 1 of the machine's pid namespace: everything on the machine dies with it. */
  readonly init: ProcessIdentity
}

/**
 * The record of everything that was started for one cluster. Written before any of it exists, and after every change.
 */
export interface ClusterState {
  readonly version: 1
  readonly name: string
  readonly index: number
  readonly nodes: number
  readonly artifacts: Readonly<Partial<Record<ArtifactName, string>>>
  readonly pauseImage: string
  /** Machines with power, by name. */
  readonly machines: Readonly<Record<string, MachineProcesses>>
  /** Archives that a node has imported (archiveKey of each), by node. They outlive a power cut. */
  readonly images: Readonly<Record<string, readonly string[]>>
  /** True once `up` has finished. */
  readonly ready: boolean
}

export async function readState(name: string, root?: string): Promise<ClusterState | undefined> {
  try {
    const state = JSON.parse(await readFile(clusterPaths(name, root).state, 'utf8')) as ClusterState
    return state.version === 1 ? state : undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

export async function writeState(state: ClusterState, root?: string): Promise<void> {
  const path = clusterPaths(state.name, root).state
  const scratch = `${path}.${process.pid}`
  await writeFile(scratch, JSON.stringify(state, undefined, 2))
  await rename(scratch, path)
}

export function planOf(state: ClusterState): ClusterPlan {
  return planCluster(state.name, state.index, state.nodes)
}

/** Returns the states of all clusters on this machine. */
export async function allStates(root: string): Promise<ClusterState[]> {
  const states: ClusterState[] = []
  for (const entry of await readdir(root, { withFileTypes: true }).catch(missingIsEmpty)) {
    if (!entry.isDirectory()) continue
    const state = await readState(entry.name, root)
    if (state !== undefined) states.push(state)
  }
  return states
}

function missingIsEmpty(error: NodeJS.ErrnoException): [] {
  if (error.code === 'ENOENT') return []
  throw error
}

/** Returns the names of all clusters that have a directory, including remains of failed ones. */
export async function clusterNames(root: string): Promise<string[]> {
  const entries = await readdir(root, { withFileTypes: true }).catch(missingIsEmpty)
  return entries
    .filter(it => it.isDirectory())
    .map(it => it.name)
    .sort()
}

/** Returns a name for an archive that changes with its content. */
export function archiveKey(path: string, stat: { size: number; mtimeMs: number }): string {
  return `${join(path)}:${stat.size}:${stat.mtimeMs}`
}

/**
 * Returns a node's keys after an import. An archive with the same file name holds images of the same names, so it
 * replaces the earlier one. To use the earlier images again, import their archive again.
 */
export function keysAfterImport(present: readonly string[], imported: readonly string[]): string[] {
  const file = (key: string) => basename(key.replace(/:[^:]*:[^:]*$/, ''))
  const replaced = new Set(imported.map(file))
  return [...present.filter(key => !replaced.has(file(key))), ...imported]
}
