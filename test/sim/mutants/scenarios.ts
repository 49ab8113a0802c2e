/** Scenarios that provoke one situation in several variants, because the placement of pods is not known beforehand. */
import type { Command } from '../model/commands.ts'
import type { Scenario } from '../model/round.ts'
import type { Mutation } from './mutant.ts'

export type Steps = readonly (readonly [afterMs: number, command: Command])[]

const small: Omit<Scenario, 'seed' | 'steps'> = {
  ...{ nodes: 3, replicas: 1, hotBackups: 1, coldBackups: 0, copies: 1, containers: 'one' },
}

/** Runs the same steps with each of these seeds. */
export const bySeeds = (
  seeds: readonly number[],
  about: Partial<Omit<Scenario, 'seed' | 'steps'>>,
  steps: Steps,
): Scenario[] =>
  seeds.map(seed => ({
    ...small,
    ...about,
    seed,
    steps: steps.map(([afterMs, command]) => ({ afterMs, command })),
  }))

/** Runs the steps for each node in turn, with each of these seeds. */
export const onEachNode = (
  seeds: readonly number[],
  about: Partial<Omit<Scenario, 'seed' | 'steps'>>,
  steps: (node: number) => Steps,
): Scenario[] =>
  Array.from({ length: about.nodes ?? small.nodes }, (_, node) => bySeeds(seeds, about, steps(node))).flat()

/** Runs the steps at each of these moments, with each of these seeds. */
export const atEach = (
  moments: readonly number[],
  seeds: readonly number[],
  about: Partial<Omit<Scenario, 'seed' | 'steps'>>,
  steps: (ms: number) => Steps,
): Scenario[] => moments.flatMap(ms => bySeeds(seeds, about, steps(ms)))

/** A primary that stands for its successor resumes without another look at its Lease. That look hides errors of handovers. */
export const takenBackUnasked: Mutation = {
  file: 'src/agent/tasks/hand-over.ts',
  find: 'if (!isPromised || (await isStillIts(work, task)))',
  replace: 'if (!isPromised || isStillIts !== undefined)',
}

/** A pod that was the heir of several slots refuses none of their clients. That hides errors of redirects. */
export const strangersGetIn: Mutation = {
  file: 'src/agent/tasks/keep-out.ts',
  find: 'if (strangers.told(pod.uid) === what) return',
  replace: 'if (strangers.told(pod.uid) !== null) return',
}

/**
 * A late successor is not ended before another one is called. Disables a safeguard that would mask the mutation beside
 * it.
 */
export const latecomersRun: Mutation = {
  file: 'src/backuppodset/decide/takeovers.ts',
  find: 'if (latecomer === undefined) return call(slot, successor, 0)',
  replace: 'if (latecomer !== null) return call(slot, successor, 0)',
}

/**
 * A called pod counts as one that does not run although its agent has told that it resumes. Disables a safeguard that would
 * mask the mutation beside it.
 */
export const resumingIsNothing: Mutation = {
  file: 'src/slot/observe/stage.ts',
  find: "resuming: condition?.status === 'False' &&",
  replace: "resuming: condition?.status === 'Unknown' &&",
}

/**
 * An agent that only starts is not asked to end a primary before another pod is called. Disables a safeguard that would mask
 * the mutation beside it.
 */
export const startingIsAbsent: Mutation = {
  file: 'src/slot/decide/ending.ts',
  find: 'agent.silent !== true',
  replace: 'agent.ready',
}

/** An agent of an earlier version: the record of a death does not say what its node can restore. */
export const leavesUntold: Mutation = {
  file: 'src/agent/state/deaths.ts',
  find: 'left: options.leftOf(pod)',
  replace: 'left: undefined',
}

/**
 * A life ends without a question to the API server. That question would save memory which the operator takes for gone,
 * and so mask the mutation beside it.
 */
export const endsUnasked: Mutation = {
  file: 'src/slot/act/still-gone.ts',
  find: 'if (nodes.length === 0) return',
  replace: 'if (nodes.length >= 0) return',
}

export const wait: Command = { type: 'wait' }
export const endApp = (primary = 0, container: 'app' | 'side' | 'proxy' = 'app'): Command => ({
  ...{ type: 'endApp', primary, container },
})
export const hangApp = (forMs: number, exitsMs?: number): Command => ({
  ...{ type: 'hangApp', primary: 0, forMs },
  ...(exitsMs !== undefined && { exitsMs }),
})
export const endAgent = (node: number, forMs: number): Command => ({
  ...{ type: 'endAgent', node, how: 'kill', forMs },
})
/** Slows down the start of containers, restores and answers on this node. */
export const slow = (
  node: number,
  by: { readonly startMs?: number; readonly restoreMs?: number; readonly answerMs?: number },
  forMs: number,
): Command => ({ ...{ type: 'slowStage', node, startMs: 0, restoreMs: 0, answerMs: 0, forMs }, ...by })

export const lag = (
  index: number,
  resource: 'pods' | 'leases' | 'reports' | 'sets',
  forMs: number,
  lagMs = -1,
): Command => ({ type: 'lagOperator', index, resource, lagMs, forMs })
