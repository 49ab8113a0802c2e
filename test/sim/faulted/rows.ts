/** The faults that a move may meet, each with what is left of it: the rows of the table of bad input. */
import type { MigrationPhase } from '../../../src/api/migration.ts'
import type { Command, Hit } from '../model/commands.ts'

export interface Row {
  readonly name: string
  /** Undefined: the move itself asks for the impossible. */
  readonly fault: ((forMs: number) => Command) | undefined
  /** The node that the move asks for. */
  readonly to?: number
  /** The fault ends an app or takes a node away, or changes what the set wants: then another pod may have the slot. */
  readonly mayBeOther?: true
}

/** Phases in which a fault can begin. */
export const phases = [
  ...(['Pending', 'Reserving', 'Preparing', 'Stopping', 'Switching'] as const),
] satisfies readonly MigrationPhase[]

const hit =
  (of: 'source' | 'target', how: Hit) =>
  (forMs: number): Command => ({ type: 'hitMove', of, how, forMs })
const operator =
  (index: number) =>
  (forMs: number): Command => ({ type: 'endOperator', index, how: 'kill', forMs })

export const rows: readonly Row[] = [
  { name: 'no fault', fault: undefined },
  { name: 'an unknown node', fault: undefined, to: -1 },
  { name: 'source that cannot be stopped', fault: hit('source', 'refuseStops') },
  { name: 'quota', fault: forMs => ({ type: 'refusePods', forMs }) },
  { name: 'no room', fault: hit('source', 'noRoom') },
  { name: 'target deleted', fault: hit('target', 'deletePod'), mayBeOther: true },
  { name: 'node of the target lost', fault: hit('target', 'powerOff'), mayBeOther: true },
  { name: 'agent of the source lost', fault: hit('source', 'endAgent') },
  { name: 'agent of the target lost', fault: hit('target', 'endAgent'), mayBeOther: true },
  { name: 'transfer cut', fault: hit('source', 'cutTransfer'), mayBeOther: true },
  { name: 'restore refused', fault: hit('target', 'refuseRestores'), mayBeOther: true },
  { name: 'app of the source ends', fault: hit('source', 'endApp'), mayBeOther: true },
  { name: 'source deleted', fault: hit('source', 'deletePod'), mayBeOther: true },
  { name: 'node of the source lost', fault: hit('source', 'powerOff'), mayBeOther: true },
  {
    name: 'rollout',
    fault: () => ({
      type: 'editSpec',
      spec: { template: { metadata: { labels: { app: 'web', release: 'next' } } } },
    }),
    mayBeOther: true,
  },
  { name: 'scaled up', fault: () => ({ type: 'scale', replicas: 2 }) },
  { name: 'scaled to nothing', fault: () => ({ type: 'scale', replicas: 0 }), mayBeOther: true },
  {
    name: 'a second move of the pod',
    fault: () => ({ type: 'move', primary: 0, to: undefined, maxDowntimeMs: undefined }),
    mayBeOther: true,
  },
  { name: 'leading operator lost', fault: operator(0) },
  { name: 'other operator lost', fault: operator(1) },
  { name: 'API server away', fault: forMs => ({ type: 'apiAway', forMs }), mayBeOther: true },
  { name: 'called off', fault: () => ({ type: 'abortMove', move: 0 }) },
]
