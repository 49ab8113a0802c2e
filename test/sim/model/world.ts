/**
 * What is really there, whatever anybody knows of it: machines, containers, and what runs in them. An app's memory is
 * the life that it began with and the moment up to which it has lived that life.
 */
import type { Party } from './virtual-time.ts'

/** What an app remembers. */
export interface Memory {
  /** Tells the app that was started fresh from all others; its copies share it. */
  readonly genesis: string
  /** True time, ms: the moment up to which it remembers. What runs remembers everything up to now. */
  readonly until: number
}

export interface App {
  memory: Memory
  /** True time, ms, since which it runs; undefined: it is stopped. */
  runsSince: number | undefined
  /** True time, ms, until which it runs and answers nobody. */
  hangsUntil?: number
  /** It exits so long after its agent has found that it does not answer, ms. */
  exitsMs?: number
}

export interface Container {
  readonly name: string
  id: string
  restarts: number
  startedAt: number
  /** Its first process is the app; else it holds the stage, and an app may lie or run below. */
  readonly holds: boolean
  up: boolean
  app: App | undefined
}

export interface PodOnNode {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly ip: string
  readonly set: string
  readonly containers: Container[]
  /** At its gate; undefined: it has none, or it is open. */
  gate: { id: string; digest: string } | undefined
  /** Its containers have not been started, for its gate. */
  atGate: boolean
  /** Connections to the pod are led there: an address, or nowhere. Undefined: the pod answers itself. */
  grave: string | undefined
  /** True time, ms: when the kubelet kills it. */
  killAt: number | undefined
  killed: boolean
}

export interface Watch {
  readonly name: string
  readonly uid: string
  readonly container: string
  readonly containerId: string
  heir: string | undefined
  /** How long its grave stays closed on nobody's word, ms; undefined: for ever. */
  lastsMs: number | undefined
  opensAt: number
  diedAt: number | undefined
  grave: 'none' | 'ready' | 'closed'
}

/** An app that ran has ended. */
export interface Ending {
  readonly at: number
  readonly uid: string
  readonly genesis: string
  /** `itself`: nobody wanted that, as of a sibling that is ended with it. */
  readonly by: 'itself' | 'agent' | 'kubelet'
}

/** What stands still by order of an agent. */
export interface Stop {
  readonly apps: readonly App[]
  /** It outlives the agent. */
  isKept: boolean
  /** Moment at which it goes on by itself, true time, ms. */
  until: number
}

/** One machine. What dies with its power, and what outlives an agent. */
export interface Machine {
  readonly name: string
  readonly address: string
  /** Of its agents' certificate. */
  readonly fingerprint: string
  up: boolean
  /** Kernel, kubelet and sentinel: gone and new with each boot. */
  kernel: Party
  boot: number
  readonly pods: Map<string, PodOnNode>
  readonly watches: Map<string, Watch>
  /** Names of stops that hold, with what they hold. */
  readonly stops: Map<string, Stop>
  /** Generations in the tmpfs, by directory: what was saved, by container. */
  readonly images: Map<string, ReadonlyMap<string, Memory>>
  /** Kinds of memory that were brought back once since the boot. */
  readonly proven: Set<string>
  /** Told of deaths, as the connection of the agent that runs. */
  listener: ((watch: Watch) => void) | undefined
  /** Cut off from the other machines. */
  partitioned: boolean
  /** Its kernel can shut pods off. */
  graves: boolean
  /** The sentinel stops nothing: somebody traces what is to be stopped. */
  refusesStops: boolean
  /** Containers start so much later, ms; to bring memory back takes longer; what goes on stage answers later. */
  slowStartMs: number
  slowRestoreMs: number
  slowAnswerMs: number
  readonly endings: Ending[]
}

export const createMachine = (name: string, index: number, kernel: Party): Machine => ({
  name,
  address: `192.0.2.${index + 1}:9443`,
  fingerprint: String(index).padStart(64, '0'),
  up: true,
  kernel,
  boot: 1,
  pods: new Map(),
  watches: new Map(),
  stops: new Map(),
  images: new Map(),
  proven: new Set(),
  listener: undefined,
  partitioned: false,
  graves: true,
  refusesStops: false,
  slowStartMs: 0,
  slowRestoreMs: 0,
  slowAnswerMs: 0,
  endings: [],
})

/** It runs, and answers who asks. */
export const answers = (app: App | undefined, now: number): boolean =>
  app?.runsSince !== undefined && now >= (app.hangsUntil ?? 0)

/** What this app remembers now. */
export const memoryNow = (app: App, now: number): Memory =>
  app.runsSince === undefined ? app.memory : { ...app.memory, until: now }

/** Who answers a connection to this address: the app, through graves of dead pods. */
export function answering(
  machines: Iterable<Machine>,
  ip: string,
  now: number,
): { pod: PodOnNode; app: App } | undefined {
  const podAt = (address: string): PodOnNode | undefined => {
    for (const { up, pods } of machines)
      if (up) for (const pod of pods.values()) if (pod.ip === address && !pod.killed) return pod
    return undefined
  }
  let to = ip
  for (let hops = 0; hops < 3; hops += 1) {
    const pod = podAt(to)
    if (pod === undefined) return undefined
    if (pod.grave === undefined) {
      const app = pod.containers.find(({ name, up }) => up && name === 'app')?.app
      return app !== undefined && answers(app, now) ? { pod, app } : undefined
    }
    to = pod.grave
  }
  return undefined
}
