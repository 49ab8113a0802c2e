import { deletePod, forceDelete, hangApp, killApp, killUnwatched } from './apps.ts'
import { roll, scale } from './changes.ts'
import { apiAway, restartApi, restartBoth, restartEtcd } from './control-plane.ts'
import { move, moveCalledOff, moveTwice } from './moves.ts'
import type { Impossible, Nemesis } from './nemesis.ts'
import { cutApi, cutClients, cutPeers, lossy, slow } from './network.ts'
import { cutNode, pauseNode, powerCut, reboot } from './nodes.ts'
import { killAgent, killAllAgents, killOperator, killSentinel } from './parts.ts'
import { pauseAll, pauseLong, pauseShort } from './pauses.ts'
import { fullDisk, fullMemory } from './storage.ts'

export const nemeses: readonly Nemesis[] = [
  ...[killApp, killUnwatched, hangApp, deletePod, forceDelete],
  ...[killAgent, killAllAgents, killSentinel, killOperator],
  ...[powerCut, reboot, pauseNode, cutNode],
  ...[cutPeers, cutApi, cutClients, lossy, slow],
  ...[restartApi, restartEtcd, restartBoth],
  ...[fullMemory, fullDisk],
]

/** Moves: one of them and another fault make a round of `moves`. */
export const moves: readonly Nemesis[] = [move, moveCalledOff, moveTwice]

/** Changes that users make to their sets. Only `moves` has them as well. */
export const changes: readonly Nemesis[] = [roll, scale]

/** Those that last for long, that another one has in small, or that are no faults: `all` leaves them out. */
export const special: readonly Nemesis[] = [pauseShort, pauseLong, pauseAll, apiAway, ...moves, ...changes]

export const impossible: readonly Impossible[] = [
  {
    name: 'clock-jump',
    why: 'nodes are namespaces of one kernel, which has one wall clock: a jump would hit the whole machine. The simulation has clocks that jump (npm run sim)',
  },
  {
    name: 'delay',
    why: 'this kernel has no sch_netem; `slow` delays by a queue, and `lossy` drops by a packet filter',
  },
]
