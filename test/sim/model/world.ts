/**
 * The true state, whatever any process knows of it: machines, containers, and the apps in them. An app's memory is the
 * life that it began with and the moment up to which it has lived that life.
 */
import { createVoting, type Voting } from './fence/voting.ts'
import type { Party } from './virtual-time.ts'

/** The content of an app's memory. */
export interface Memory {
  /** Identifies the app that was started fresh; copies of its memory share it. */
  readonly genesis: string
  /** True time, ms, up to which it remembers. A running app remembers everything up to now. */
  readonly until: number
  /** It has got the signal to end: an app that continues with it ends soon. */
  readonly isToEnd?: true
}

export interface App {
  memory: Memory
  /** True time, ms, since which it has been running; undefined: it is stopped. */
  runsSince: number | undefined
  /** True time, ms, until which it runs without answering. */
  hangsUntil?: number
  /** It exits this long after its agent has noticed that it does not answer, ms. */
  exitsMs?: number
}

export interface Container {
  readonly name: string
  id: string
  restarts: number
  startedAt: number
  /**
   * False: its first process is the app. True: its first process is `hold`, and an app may be frozen or running below
   * it.
   */
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
  /** The gate at which it waits; undefined: it has no gate, or the gate is open. */
  gate: { id: string; digest: string } | undefined
  /** Its containers have not been started yet, because of its gate. */
  atGate: boolean
  /** Until when packets of the pod pass, true time, ms: a switch in the kernel, which its sentinel renews. */
  passesUntil: number
  /**
   * The apps that the sentinel has stopped because the pod has too few answers, and resumes with it. Undefined: it may
   * run.
   */
  frozen: Set<App> | undefined
  /** The redirect of the pod's connections: an address, or nowhere. Undefined: the pod answers itself. */
  grave: string | undefined
  /** Addresses of pods whose redirected clients it refuses. */
  keptOut: ReadonlySet<string>
  /** The kubelet ends it, and has sent its apps the signal, or waits for their hooks first. */
  isTold: boolean
  /** True time, ms, at which the kubelet kills it. */
  killAt: number | undefined
  killed: boolean
}

export interface Watch {
  readonly name: string
  readonly uid: string
  readonly container: string
  readonly containerId: string
  heir: string | undefined
  /** How long its redirect lasts unless renewed, ms; undefined: for ever. */
  lastsMs: number | undefined
  opensAt: number
  diedAt: number | undefined
  grave: 'none' | 'ready' | 'closed'
}

/** The end of a running app. */
export interface Ending {
  readonly at: number
  readonly uid: string
  readonly genesis: string
  /** `itself`: unintended, like the end of a sibling that ends with it. */
  readonly by: 'itself' | 'agent' | 'kubelet'
}

/** Processes that an agent has stopped. */
export interface Stop {
  readonly pod: PodOnNode | undefined
  readonly apps: readonly App[]
  /** The stop outlives the agent. */
  isKept: boolean
  /** True time, ms, at which the sentinel resumes them by itself. */
  until: number
}

/** One machine. Some of its state ends with its power, some outlives an agent. */
export interface Machine {
  readonly name: string
  readonly address: string
  /** Fingerprint of its agents' certificate. */
  readonly fingerprint: string
  up: boolean
  /** Kernel, kubelet and sentinel; a new party with each boot. */
  kernel: Party
  boot: number
  readonly pods: Map<string, PodOnNode>
  readonly watches: Map<string, Watch>
  /** Stops in effect, by name. */
  readonly stops: Map<string, Stop>
  /** Generations in the tmpfs, by directory: the saved memory, by container. */
  readonly images: Map<string, ReadonlyMap<string, Memory>>
  /** Kinds of memory that have been restored at least once since the boot. */
  readonly proven: Set<string>
  /** Called for each death; the connection of the running agent. */
  listener: ((watch: Watch) => void) | undefined
  /** Cut off from the other machines. */
  partitioned: boolean
  /** Names of the machines whose packets do not arrive here. */
  readonly deafTo: Set<string>
  /** How fast its monotonic clock runs, beside true time. */
  clockRate: number
  /** Its sentinel as a voter and as the guard of primaries; another one with each boot. */
  voting: Voting
  /** The apps that ran when it was paused, with its processes and its kernel; undefined: it is not paused. */
  asleep: readonly App[] | undefined
  /** Its kernel can redirect the addresses of dead pods. */
  graves: boolean
  /** The sentinel can stop no process, because another program traces them. */
  refusesStops: boolean
  /** No image can be restored. */
  refusesRestores: boolean
  /** Additional time for the start of containers, for restores, and until a restored app answers, ms. */
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
  deafTo: new Set(),
  clockRate: 1,
  voting: createVoting(name, 1),
  asleep: undefined,
  graves: true,
  refusesStops: false,
  refusesRestores: false,
  slowStartMs: 0,
  slowRestoreMs: 0,
  slowAnswerMs: 0,
  endings: [],
})

/** True if it runs and answers requests. */
export const answers = (app: App | undefined, now: number): boolean =>
  app?.runsSince !== undefined && now >= (app.hangsUntil ?? 0)

/** Returns this app's memory at present. */
export const memoryNow = (app: App, now: number): Memory =>
  app.runsSince === undefined ? app.memory : { ...app.memory, until: now }

/** True if a datagram of one machine arrives at the other one. */
export const reaches = (from: Machine, to: Machine): boolean =>
  from.up && to.up && !from.partitioned && !to.partitioned && !to.deafTo.has(from.name)

/** True if the app runs, or will run again as soon as its pod may serve. */
export const isToRun = (pod: PodOnNode, app: App): boolean =>
  app.runsSince !== undefined || pod.frozen?.has(app) === true

/** Lets an app run, as soon as its pod may serve. */
export function letRun(pod: PodOnNode, app: App, now: number): void {
  if (pod.frozen === undefined) app.runsSince ??= now
  else pod.frozen.add(app)
}

/** Stops an app. @returns false if it was stopped already */
export function halt(pod: PodOnNode, app: App, now: number): boolean {
  const ran = isToRun(pod, app)
  pod.frozen?.delete(app)
  app.memory = memoryNow(app, now)
  app.runsSince = undefined
  return ran
}

/** Stops every process of a pod until it may serve. */
export function freeze(pod: PodOnNode, now: number): void {
  const apps = pod.containers.flatMap(({ up, app }) => (up && app?.runsSince !== undefined ? [app] : []))
  for (const app of apps) halt(pod, app, now)
  pod.frozen ??= new Set(apps)
}

/** Resumes what `freeze` has stopped, and what should have begun to run meanwhile. */
export function unfreeze(pod: PodOnNode, now: number): void {
  const apps = pod.frozen ?? []
  pod.frozen = undefined
  for (const app of apps) app.runsSince = now
}

/** Returns the app of a pod that clients reach: it runs, packets of its pod pass, and nothing redirects them. */
export function servingApp({ up, kernel, pods }: Machine, uid: string, now: number): App | undefined {
  const pod = pods.get(uid)
  const isUnreachable = pod === undefined || now >= pod.passesUntil || pod.grave !== undefined
  if (!up || kernel.paused || isUnreachable) return undefined
  const app = pod.containers.find(each => each.up && each.name === 'app')?.app
  return app?.runsSince === undefined ? undefined : app
}

/** Returns the app that answers a connection to this address, directly or by way of redirects. */
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
      return app !== undefined && answers(app, now) && now < pod.passesUntil ? { pod, app } : undefined
    }
    to = pod.grave
    if (podAt(to)?.keptOut.has(pod.ip) === true) return undefined
  }
  return undefined
}
