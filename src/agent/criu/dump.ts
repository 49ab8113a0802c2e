import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { machine, release } from 'node:os'
import { join } from 'node:path'
import { AgentError, isAgentError } from '../../api/agent-errors.ts'
import { inBatches } from '../container/process.ts'
import type { SentinelClient, StopRequest } from '../sentinel/client.ts'
import { continueAnyway, type HeldStop } from './continue.ts'
import { goFile } from './criu-gate.ts'
import type { DriverDependencies } from './dependencies.ts'
import {
  assertNotEnding,
  type DumpTarget,
  dumpContainer,
  expected,
  imageOf,
  lateFiles,
  leavesFiles,
  target,
} from './dump-container.ts'
import type { FilesRun } from './files.ts'
import { completeAll, tracking } from './increment.ts'
import type { DumpOptions, DumpResult, LocatedPod } from './memory-driver.ts'
import { assertNoOnlookers } from './onlookers.ts'
import { assertWhole } from './pages.ts'
import { makeRoom } from './room.ts'
import { planSaves, type Save } from './saves.ts'
import type { TrackedDump } from './tracking.ts'

/** See MemoryDriver.dump. */
export async function dump(
  deps: DriverDependencies,
  pod: LocatedPod,
  directory: string,
  options: DumpOptions,
): Promise<DumpResult> {
  if (pod.pod.promoted) await assertWhole(deps, pod.pod.uid)
  await mkdir(deps.workDirectory, { recursive: true, mode: 0o700 })
  // A new directory each time: a CRIU left by an earlier agent may still write to another one.
  const work = await mkdtemp(join(deps.workDirectory, `dump-${pod.pod.uid}-`))
  let lost = false
  try {
    return await tracking(deps, pod, directory, options, tracked =>
      dumpWith(deps, pod, directory, work, tracked, options),
    )
  } catch (error) {
    // A CRIU may still be dumping; `nsrun` recognizes that by files in this directory and lets CRIU finish: see
    // dump_has_begun in native/nsrun/nsrun.c.
    lost = isAgentError(error, 'SentinelLost', 'SentinelUnavailable')
    throw error
  } finally {
    if (!lost) await rm(work, { recursive: true, force: true, maxRetries: 10 })
  }
}

async function dumpWith(
  deps: DriverDependencies,
  pod: LocatedPod,
  directory: string,
  work: string,
  tracked: TrackedDump | undefined,
  { deadlineMs, before, base, takeSpare, roomBytes, beforeStop, onStopped, signal }: DumpOptions,
): Promise<DumpResult> {
  const name = `dump-${pod.pod.uid}`
  // Does as much as possible before the stop, so that the pod is stopped only for the rest.
  const targets = await Promise.all(pod.containers.map(it => target(deps, it, directory, work, tracked)))
  const saves = await planSaves(deps, pod, directory)
  await assertNoOnlookers(deps.fs, pod)
  const { startedUnixNs } = await deps.sentinel.hello(signal)
  signal.throwIfAborted()

  const cgroups = pod.containers.flatMap(container => container.cgroups)
  const failed = new AbortController()
  const run = { deadlineMs, scratch: work, roomBytes, signal: AbortSignal.any([signal, failed.signal]) }
  const fail = (error: unknown) => {
    failed.abort(error)
    throw error
  }
  // Most pods have nothing in /dev/shm; then no program has to run for it during the stop.
  const { empty, early, late } = await sortSaves(deps, saves)
  for (const save of empty) await deps.files.saveNothing(save)
  // Starts as much as possible before the stop; these processes wait for it.
  const gated = { stop: name, directory: work }
  const saved = early.map(save => deps.files.save(save, run, gated).catch(fail))
  const dumps = targets.map(it => dumpContainer(deps, it, name, run).catch(fail))
  const all: Promise<void>[] = [...dumps, ...saved]
  // `run.signal` reports each failure; without this handler, Node would also report it as an unhandled rejection.
  for (const each of all) each.catch(() => undefined)
  const gates = [goFile(work), ...targets.map(({ gate }) => gate.path)]
  const after = late.length > 0 ? undefined : endOfWork(targets, empty, all.length)
  try {
    await prepared(targets, dumps, { before, signal: run.signal })
    await beforeStop?.()
    run.signal.throwIfAborted()
    const takenAt = new Date(deps.clock.now()).toISOString()
    const { skewMicroseconds } = await stop(deps, {
      ...{ name, deadlineMs, cgroups, gates },
      ...(after !== undefined && { after }),
    }).catch(async (error: unknown) => {
      failed.abort(error)
      await Promise.allSettled(all)
      // The stop may have taken effect despite the error, and a CRIU past its gate leaves stopped processes stopped.
      if (!isAgentError(error, 'StopFailed', 'Fenced'))
        await continueAnyway(deps, pod, { name, startedUnixNs })
      throw error
    })
    onStopped?.()
    const held = await whileStopped(deps, pod, { name, startedUnixNs }, async () => {
      // The sentinel has opened the gates already, unless it could not.
      await Promise.all(gates.map(gate => writeFile(gate, '')))
      all.push(...late.map(save => deps.files.save(save, run).catch(fail)))
      // All must end before the sentinel or the agent resumes the pod: a dump of running processes would be
      // inconsistent.
      await Promise.allSettled(all)
      run.signal.throwIfAborted()
      // The sentinel has resumed the pod because all work was done: nothing is left to check.
      if (after !== undefined && (await deps.sentinel.isDone(name))) return
      for (const save of empty) if (!(await deps.files.isEmpty(save))) await deps.files.save(save, run)
      await saveLateFiles(deps, targets, saves, run)
      for (const it of targets) await assertNotEnding(deps, it)
    })
    if (held.expired) throw new AgentError('DumpExpired', `${deadlineMs} ms`)
    const pageDigests = await completeAll(targets, { base, takeSpare, copyPages: deps.copyPages }, signal)
    const result = await resultOf(deps, targets, saves, {
      takenAt,
      skewMicroseconds,
      heldMicroseconds: held.heldMicroseconds + (tracked?.heldMicroseconds ?? 0),
    })
    return { ...result, pageDigests }
  } finally {
    // Aborts a CRIU that still waits at its gate.
    failed.abort(new Error('the dump is over'))
    await Promise.allSettled(all)
  }
}

/** Resolves when each CRIU waits at its gate, and there is room for its images. @throws AgentError DumpFailed, the errors of `dumps`. */
async function prepared(
  targets: readonly DumpTarget[],
  dumps: readonly Promise<void>[],
  { before, signal }: Pick<DumpOptions, 'before' | 'signal'>,
): Promise<void> {
  await Promise.all([
    ...targets.map((it, index) => it.gate.ready(dumps[index] ?? Promise.resolve())),
    ...targets.map(it => makeRoom(it.images, expected(it, before), signal)),
  ])
  signal.throwIfAborted()
  // A CRIU without the gate has dumped running processes: the dump is inconsistent and lacks their files.
  for (const { gate, container } of targets)
    if (!(await gate.wasReached()))
      throw new AgentError('DumpFailed', `container ${container.name}: CRIU did not wait for the stop`)
}

/** Returns how the sentinel recognizes that all work is done and the pod may run again. */
const endOfWork = (
  targets: readonly DumpTarget[],
  empty: readonly Directory[],
  spawns: number,
): NonNullable<StopRequest['after']> => ({
  spawns,
  unless: targets.map(({ images }) => join(images, lateFiles)),
  empty: empty.map(({ directory }) => directory),
  ending: targets.flatMap(({ app, container }) => [app.pid, container.init.pid]),
})

const resultOf = async (
  { criuVersion, machine: node }: DriverDependencies,
  targets: readonly DumpTarget[],
  saves: readonly Save[],
  stop: {
    readonly takenAt: string
    readonly skewMicroseconds: number
    readonly heldMicroseconds: number
  },
): Promise<DumpResult> => ({
  takenAt: stop.takenAt,
  frozenSeconds: stop.heldMicroseconds / 1e6,
  skewSeconds: stop.skewMicroseconds / 1e6,
  criu: criuVersion,
  kernel: release(),
  architecture: machine(),
  ...(node?.cpuFeatures === undefined ? {} : { cpuFeatures: node.cpuFeatures }),
  // One container at a time: the parsed images are in the agent's memory.
  containers: await inBatches(targets, imageOf, 1),
  volumes: saves.flatMap(save => (save.kind === 'volume' ? [save.name] : [])),
})

type Directory = Exclude<Save, { readonly kind: 'layer' }>

/**
 * Sorts the saves into empty ones, early ones (started before the stop) and late ones (started after it). /dev/shm is
 * late: it is read in the pod's own namespaces, where a process killed while it waits may become a zombie child of the
 * application, which CRIU cannot save.
 */
async function sortSaves(
  { files }: DriverDependencies,
  saves: readonly Save[],
): Promise<{ empty: Directory[]; early: Save[]; late: Save[] }> {
  const sorted = { empty: [] as Directory[], early: [] as Save[], late: [] as Save[] }
  for (const save of saves)
    if (save.kind !== 'layer' && (await files.isEmpty(save))) sorted.empty.push(save)
    else sorted[save.kind === 'shm' ? 'late' : 'early'].push(save)
  return sorted
}

/**
 * Grace period after the deadline, in which CRIU can undo its changes to the processes before it is killed: to resume
 * them earlier could break them. So the sentinel ends the stop later by as much.
 */
const patienceMs = 1_500

/** Takes no signal: if the agent did not wait for the answer, the stop would last until its deadline. */
async function stop(
  deps: DriverDependencies,
  { deadlineMs, ...request }: StopRequest,
): ReturnType<SentinelClient['stop']> {
  try {
    return await deps.sentinel.stop({ ...request, deadlineMs: deadlineMs + patienceMs })
  } catch (error) {
    // A refusal means that this request stopped nothing. An earlier agent's stop may be in effect; its CRIU still
    // works.
    if (isAgentError(error, 'SentinelRefused')) throw new AgentError('StopFailed', error.detail, error)
    throw error
  }
}

/** Runs the work and resumes the pod whatever happens. If both fail, throws the failure of the work. */
async function whileStopped(
  deps: DriverDependencies,
  pod: LocatedPod,
  held: HeldStop,
  work: () => Promise<void>,
): Promise<{ readonly heldMicroseconds: number; readonly expired: boolean }> {
  let failure: { readonly error: unknown } | undefined
  try {
    await work()
  } catch (error) {
    failure = { error }
  }
  if (failure !== undefined && isAgentError(failure.error, 'SentinelLost', 'SentinelUnavailable')) {
    await continueAnyway(deps, pod, held)
    throw failure.error
  }
  try {
    const continued = await deps.sentinel.continue(held.name)
    if (failure !== undefined) throw continued.expired ? expired(failure.error) : failure.error
    return continued
  } catch (error) {
    if (failure === undefined || error === failure.error) throw error
    if (isAgentError(error, 'DumpExpired')) throw error
    await continueAnyway(deps, pod, held)
    throw failure.error
  }
}

const expired = (cause: unknown) => new AgentError('DumpExpired', 'the sentinel resumed the pod', cause)

/** CRIU leaves files in the layer for deleted files that are still open. The layer may have been read before that. */
async function saveLateFiles(
  deps: DriverDependencies,
  targets: readonly DumpTarget[],
  saves: readonly Save[],
  run: FilesRun,
): Promise<void> {
  for (const { container, images } of targets) {
    const layer = saves.find(save => save.kind === 'layer' && save.container === container.name)
    if (layer !== undefined && (await leavesFiles(images))) await deps.files.save(layer, run)
  }
}
