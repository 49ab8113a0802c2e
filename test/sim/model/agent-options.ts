/** The machine and the connections of an agent of the model. */
import type { GrantRecord } from '../../../src/agent/observe/snapshot.ts'
import type { Agree } from '../../../src/agent/tasks/agree.ts'
import type { SlotKey } from '../../../src/api/slot-key.ts'
import type { Api } from '../../../src/kube/api-types.ts'
import type { Random } from '../../../src/kube/random.ts'
import type { TraceSink } from '../../../src/traces/span.ts'
import type { Clones } from './driver.ts'
import type { Heartbeats } from './fence/heartbeats.ts'
import type { Shelf, ShelfNews } from './generations.ts'
import type { Kubelet } from './kubelet.ts'
import type { Party, VirtualTime } from './virtual-time.ts'
import type { App, Machine, PodOnNode } from './world.ts'

/** State that a machine keeps for its agents; lost with its power. */
export interface Volatile {
  readonly shelf: Shelf
  readonly clones: Clones
  readonly news: ShelfNews
  /** Records of grants, by slot. */
  readonly grants: Map<string, GrantRecord>
}

/** An agent that answers uses of grants. */
export interface Listening {
  readonly party: Party
  readonly agree: Agree
}

export interface AgentOptions {
  readonly machine: Machine
  readonly volatile: Volatile
  readonly party: Party
  readonly api: Api
  readonly time: VirtualTime
  readonly random: Random
  readonly kubelet: () => Kubelet
  readonly beats: Heartbeats
  /** Absent: the sentinel neither votes nor is voted on. */
  readonly heartbeatPort: number | undefined
  /** Returns another machine if this one can reach it. */
  readonly reach: (address: string) =>
    | {
        readonly machine: Machine
        readonly shelf: Shelf
        readonly news: ShelfNews
        readonly answers: boolean
        /** The agent that runs there now. */
        readonly agent: Listening | undefined
      }
    | undefined
  readonly thawed: (
    pod: PodOnNode,
    by: { readonly slot: SlotKey; readonly epoch: number; readonly generation: number },
  ) => void
  readonly discarded: (pod: PodOnNode, app: App) => void
  /** Called when an app exits by itself. */
  readonly exits: (pod: PodOnNode, app: App) => void
  /** Called once the agent answers uses of grants. */
  readonly listens: (agree: Agree) => void
  readonly nextName: () => string
  readonly trace?: TraceSink
  readonly signal: AbortSignal
}
