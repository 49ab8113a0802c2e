/** Keeps exactly the wanted tasks running: the boundary between desired and actual work. */
import { type BackoffPolicy, backoffMs } from '../../kube/backoff.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Random } from '../../kube/random.ts'

export interface Wanted {
  readonly key: string
  readonly version: string
  /** Tasks with the same value never run at the same time. */
  readonly memoryOf?: string
}

/** Abort reason of a task that is not wanted any more, or only in another version. */
export class NotWanted extends Error {
  override readonly name = 'NotWanted'
}

export interface Tasks<T extends Wanted> {
  /**
   * Reconciles the running tasks with the wanted ones. Stops tasks that are not wanted any more, or in another version,
   * and starts new ones as soon as no other task works on the same memory. A task that has completed starts again only
   * when its version changes. A task that has failed is retried after a growing pause.
   */
  want(wanted: readonly T[]): void
  /** Keys of tasks that run, are about to end, or wait for their start or next try. */
  readonly active: ReadonlySet<string>
  /** Stops all tasks and waits for their end. No task starts afterwards. */
  stop(reason: unknown): Promise<void>
}

export interface TasksOptions<T extends Wanted> {
  /**
   * Performs the task until it is done or the signal fires. A rejection after the signal fired is no failure. A task
   * that never ends calls `succeeded` after each success: failures weeks apart are not consecutive.
   */
  readonly perform: (task: T, signal: AbortSignal, succeeded: () => void) => Promise<void>
  readonly onFailure: (task: T, error: unknown, again: { readonly inMs: number }) => void
  readonly clock: Clock
  readonly random: Random
  readonly backoff?: BackoffPolicy
}

const ordinaryBackoff: BackoffPolicy = { initialMs: 200, maxMs: 30_000, jitter: 0.2 }

interface Slot<T> {
  task: T
  /** `waiting`: for the memory. `pausing`: after a failure. `ending`: its signal has fired. */
  state: 'waiting' | 'running' | 'ending' | 'pausing' | 'done'
  abort: AbortController
  /** Consecutive ones. */
  failures: number
}

export function createTasks<T extends Wanted>(options: TasksOptions<T>): Tasks<T> {
  const { perform, onFailure, clock, random, backoff = ordinaryBackoff } = options
  const slots = new Map<string, Slot<T>>()
  /** Key of the task that works on each memory. */
  const busy = new Map<string, string>()
  const ends = new Set<Promise<void>>()
  let wantedNow = new Map<string, T>()
  let stopped = false

  const start = (slot: Slot<T>) => {
    const { task } = slot
    if (stopped || (task.memoryOf !== undefined && busy.has(task.memoryOf))) {
      slot.state = 'waiting'
      return
    }
    if (task.memoryOf !== undefined) busy.set(task.memoryOf, task.key)
    slot.state = 'running'
    slot.abort = new AbortController()
    const { signal } = slot.abort
    const end = run(slot, task, signal).then(error => {
      ends.delete(end)
      if (task.memoryOf !== undefined) busy.delete(task.memoryOf)
      ended(slot, task, error, signal)
      for (const other of slots.values()) if (other.state === 'waiting') start(other)
    })
    ends.add(end)
  }

  const run = async (
    slot: Slot<T>,
    task: T,
    signal: AbortSignal,
  ): Promise<{ readonly error: unknown } | undefined> => {
    const succeeded = () => {
      slot.failures = 0
    }
    try {
      await perform(task, signal, succeeded)
      return undefined
    } catch (error) {
      return { error }
    }
  }

  const ended = (
    slot: Slot<T>,
    task: T,
    failure: { readonly error: unknown } | undefined,
    signal: AbortSignal,
  ) => {
    if (signal.aborted || stopped) {
      // The wanted version may have changed again since this task was aborted.
      const next = wantedNow.get(task.key)
      slots.delete(task.key)
      if (next !== undefined && !stopped) begin(next)
      return
    }
    if (failure === undefined) {
      slot.state = 'done'
      return
    }
    slot.state = 'pausing'
    const inMs = backoffMs(slot.failures, backoff, random)
    slot.failures += 1
    onFailure(task, failure.error, { inMs })
    const pause = new AbortController()
    slot.abort = pause
    clock.sleep(inMs, pause.signal).then(
      () => {
        if (slots.get(task.key) === slot && slot.state === 'pausing') start(slot)
      },
      () => {
        // Not wanted any more, or replaced.
      },
    )
  }

  const begin = (task: T) => {
    const slot: Slot<T> = { task, state: 'waiting', abort: new AbortController(), failures: 0 }
    slots.set(task.key, slot)
    start(slot)
  }

  const end = (slot: Slot<T>) => {
    switch (slot.state) {
      case 'running':
        slot.state = 'ending'
        slot.abort.abort(new NotWanted(`${slot.task.key} is no longer wanted`))
        return
      case 'ending':
        return
      case 'pausing':
      case 'waiting':
      case 'done':
        slot.abort.abort(new NotWanted(slot.task.key))
        slots.delete(slot.task.key)
        return
    }
  }

  return {
    want(wanted) {
      if (stopped) return
      wantedNow = new Map(wanted.map(task => [task.key, task]))
      for (const [key, slot] of [...slots]) if (wantedNow.get(key)?.version !== slot.task.version) end(slot)
      for (const task of wanted) {
        const slot = slots.get(task.key)
        if (slot === undefined) begin(task)
        // In the same version the data may be newer in details that do not matter to a running task. The next try uses
        // it.
        else if (slot.task.version === task.version) slot.task = task
      }
    },
    get active() {
      return new Set([...slots].filter(([, { state }]) => state !== 'done').map(([key]) => key))
    },
    async stop(reason) {
      stopped = true
      for (const slot of slots.values()) slot.abort.abort(reason)
      while (ends.size > 0) await Promise.all(ends)
    },
  }
}
