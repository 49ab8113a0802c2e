// Long because each rule needs the ends of which this agent knows.
/** Detects and judges the ends of primaries, and declares them to the API server before anything on which no successor depends. */
import { type LeftMemory, podConditions, servingReasons } from '../../api/pod-contract.ts'
import { backoffMs } from '../../kube/backoff.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import type { ToldDeath } from '../../traces/agent.ts'
import type { PodView } from '../observe/snapshot.ts'
import type { PodCondition, WrittenPod } from '../report/conditions.ts'
import type { Precedence } from '../report/precedence.ts'
import type { Death, Watched } from '../sentinel/client.ts'
import { deathCondition } from './death-condition.ts'
import { lostContainer } from './lost-container.ts'
import { createToldEnds } from './told-ends.ts'
import { parseWatchName, shortId, type WatchName, watchName } from './watch-name.ts'

export interface Deaths {
  /** Pods whose memory is gone, with the slot of that memory (`slotName`), until they are gone themselves or revived. */
  readonly dead: ReadonlyMap<string, string>
  /** Handles the sentinel's news that a watched process has ended. */
  onDeath(death: Death): void
  /**
   * Declares that the memory of this pod is gone, for whatever reason. Writes this once for each pod.
   *
   * @param how isRedirected: connections to the pod are known to go where its redirect leads. byItself: the sentinel has seen
   *   that the app ended, and this agent has not ended it. Default of both: false.
   */
  declare(pod: PodView, container: string, what: string, how?: How): Promise<void>
  /**
   * True if the sentinel has told the end of each watched container of this pod, and has closed each of their redirects at an end
   * after that time, in Unix ms.
   */
  hasEnded(uid: string, since: number): boolean
  /** Called when its slot has begun a new life in this pod: the earlier death no longer counts. */
  revive(uid: string): void
  /** Looks at the pod as it is now for an end that the sentinel did not report. */
  inspect(pod: PodView): void
  /**
   * Writes a condition of a pod; undefined: the pod is gone. It writes nothing on a dead pod about whether that serves, for
   * only this module says so.
   */
  readonly patch: (
    pod: PodView,
    condition: PodCondition,
    signal?: AbortSignal,
  ) => Promise<WrittenPod | undefined>
  /**
   * Notes that this pod is watched and about to be put on stage. If its app ends before it has answered, that is no
   * death: the agent sees the end and restores the memory again.
   */
  arriving(pod: PodView): void
  /** Called when the containers of this pod are watched and on stage. */
  guarded(pod: PodView): void
  /** Takes over the sentinel's watches at the start of an agent. */
  recall(watched: readonly Watched[]): void
  /** Called when the pod does not exist any more and none of its processes is watched. */
  forget(uid: string): void
  /** Uids of pods that are watched or dead. */
  known(): ReadonlySet<string>
  settled(): Promise<void>
}

interface How {
  readonly isRedirected?: boolean
  readonly byItself?: boolean
}

/** The measurements of the sentinel. Unix time, ms. */
interface Measured {
  readonly diedAt: number
  readonly redirectMicroseconds: number | undefined
}

export interface DeathsOptions {
  readonly podOf: (uid: string) => PodView | undefined
  /** Name of the slot that this pod holds or held, for the record. */
  readonly slotOf: (pod: PodView) => string
  /** Whether this pod is the primary of a slot, by its Lease. */
  readonly holds: (pod: PodView) => boolean
  /** Whether another pod could continue with this pod's memory, so that the end of its processes is a death. */
  readonly matters: (pod: PodView) => boolean
  /** Whether connections to this pod lead to another pod once it is dead. */
  readonly hasHeir: (pod: PodView) => boolean
  /** Whether the agent of the heir may let it take the slot without the operator: see docs/adr/0129-heir-grant.md. */
  readonly hasGrant: (pod: PodView) => boolean
  /** Returns the memory of this pod's slot that this node could restore now; undefined: none. */
  readonly leftOf: (pod: PodView) => Omit<LeftMemory, 'at'> | undefined
  /** Writes a condition of a pod; undefined: the pod is gone. */
  readonly patch: Deaths['patch']
  /** Removes a watch whose process no longer counts. */
  readonly unwatch: (name: string) => void
  /** Removes all watches of a pod, and opens it to connections again. */
  readonly release: (uid: string) => void
  /** Called when the dead pods or the watched processes have changed. */
  readonly changed: () => void
  /** Whether the app was ended because pages in transit did not arrive. Called right at the death. */
  readonly lostPages?: (uid: string) => boolean
  /** Called when the app of a pod has ended by itself on its way to the stage. */
  readonly endedEarly?: (uid: string) => void
  /** Holds up the report of the node while something more urgent is under way. */
  readonly during?: Precedence['during'] | undefined
  /** Called when the API server has a death. `pod` as it was when it died. */
  readonly onDeclared?: (pod: PodView, told: ToldDeath) => void
  readonly clock: Clock
  readonly log: Log
}

const livesOf = ({ containers }: PodView): Map<string, string> =>
  new Map(containers.map(({ name, containerId = '' }) => [name, shortId(containerId)]))

/** A cache shows a write within this time. */
const showsWithinMs = 1_000

/**
 * The report of a death lets the API server, the operator and all agents work. With a grant the successor does not depend on it, and comes
 * first for so long, ms.
 */
const successorFirstMs = 30

const patchBackoff = { initialMs: 20, maxMs: 2_000, jitter: 0.2 }

export function createDeaths(options: DeathsOptions): Deaths {
  const { podOf, slotOf, holds, matters, patch, unwatch, changed, onDeclared, clock, log } = options
  const dead = new Map<string, string>()
  /** By uid, then by container: the id of the container that is watched. */
  const watched = new Map<string, Map<string, string>>()
  /** Uids of watched pods that have not been on stage yet. */
  const arriving = new Set<string>()
  const ends = createToldEnds()
  const writing = new Set<Promise<void>>()
  /** The condition of each dead pod, and since when (monotonic ms) the API server has it; undefined: it does not yet. */
  const told = new Map<string, { readonly condition: PodCondition; since: number | undefined }>()

  const tell = async (
    pod: PodView,
    condition: PodCondition,
    death: Pick<ToldDeath, 'declaredAt' | 'isByItself'>,
    measured: Measured | undefined,
  ): Promise<void> => {
    if (options.hasGrant(pod)) {
      const pause = clock.sleep(successorFirstMs)
      await (options.during?.(pause) ?? pause)
    }
    for (let failures = 0; ; failures += 1) {
      try {
        const written = await patch(pod, condition)
        const toldAt = clock.now()
        const ms = measured && Math.round(toldAt - measured.diedAt)
        if (written) log.info({ pod: `${pod.namespace}/${pod.name}`, ms }, 'death reported')
        if (written) onDeclared?.(pod, { ...death, diedAt: undefined, ...measured, toldAt })
        const said = told.get(pod.uid)
        if (said !== undefined) said.since = clock.monotonic()
        return
      } catch (error) {
        log.warn({ err: error, pod: `${pod.namespace}/${pod.name}` }, 'cannot report a death, trying again')
        await clock.sleep(backoffMs(failures, patchBackoff))
        // A pod that is gone needs no condition.
        if (podOf(pod.uid) === undefined) return
      }
    }
  }

  const declare = (
    pod: PodView,
    container: string,
    what: string,
    { isRedirected = false, byItself = false }: How = {},
    measured?: Measured,
  ): Promise<void> => {
    if (dead.has(pod.uid)) return Promise.resolve()
    const slot = slotOf(pod)
    dead.set(pod.uid, slot)
    const declaredAt = clock.now()
    const condition = deathCondition(pod, {
      ...{ container, what, slot, byItself, at: declaredAt, left: options.leftOf(pod) },
      heirAnswers: isRedirected && options.hasHeir(pod),
    })
    told.set(pod.uid, { condition, since: undefined })
    const written = track(tell(pod, condition, { declaredAt, isByItself: byItself }, measured))
    changed()
    return written
  }

  const track = (work: Promise<void>): Promise<void> => {
    const tracked = work.finally(() => writing.delete(tracked))
    writing.add(tracked)
    return tracked
  }

  /** Writes a death again: a concurrent write of another client may have reached the API server after it. */
  const tellAgain = (pod: PodView) => {
    const said = told.get(pod.uid)
    if (said?.since === undefined || pod.serving?.message === said.condition.message) return
    const waitMs = said.since + showsWithinMs - clock.monotonic()
    said.since = undefined
    void track(
      clock.sleep(Math.max(waitMs, 0)).then(async () => {
        const now = podOf(pod.uid)
        if (told.get(pod.uid) !== said || now === undefined) return
        if (now.serving?.message !== said.condition.message) await patch(now, said.condition)
        said.since = clock.monotonic()
      }),
    ).catch((error: unknown) => {
      said.since = clock.monotonic()
      log.warn({ err: error, pod: pod.name }, 'cannot report a death a second time')
    })
  }

  /**
   * True if the app of an arriving pod has ended by itself. The agent ends it if it has declared the pod dead, cannot bring its
   * pages, or sees that another pod was called. After each new connection the sentinel repeats what it has told, also about
   * containers that others have replaced.
   */
  const isByItself = (pod: PodView, { container, containerId }: WatchName): boolean =>
    !dead.has(pod.uid) &&
    holds(pod) &&
    options.lostPages?.(pod.uid) !== true &&
    livesOf(pod).get(container) === containerId

  const forgetContainer = (uid: string, container: string) => {
    const containers = watched.get(uid)
    containers?.delete(container)
    if (containers?.size === 0) watched.delete(uid)
  }

  const deaths: Deaths = {
    dead,
    onDeath(death) {
      const name = parseWatchName(death.name)
      if (name === undefined) return
      if (watched.get(name.uid)?.get(name.container) === name.containerId) ends.note(name, death)
      const pod = podOf(name.uid)
      if (pod !== undefined && arriving.has(pod.uid)) {
        // Keeps the watch. The next restore removes it before it watches the new process; an unwatch here could remove
        // that one.
        log.info({ watch: death.name }, 'process ended before its takeover')
        if (isByItself(pod, name)) options.endedEarly?.(pod.uid)
        return
      }
      // Declares the death first: without a grant the successor depends on it, and all other work can wait.
      if (pod !== undefined && matters(pod)) {
        const byItself = options.lostPages?.(pod.uid) !== true
        const how = { isRedirected: death.grave === 'closed', byItself }
        const what = byItself ? 'has ended' : lostPagesWhat
        const measured = {
          diedAt: Number(death.unixNs / 1_000n) / 1_000,
          redirectMicroseconds: death.graveMicroseconds,
        }
        void declare(pod, name.container, what, how, measured)
        log.info({ watch: death.name, grave: death.grave, graveUs: death.graveMicroseconds }, 'process died')
        return
      }
      // Another pod has its slot already, or it has finished: the redirect stays closed until this pod is gone.
      if (pod === undefined || !holds(pod)) return
      log.info({ watch: death.name }, 'process ended with no memory at stake')
      forgetContainer(name.uid, name.container)
      unwatch(death.name)
      changed()
    },
    declare,
    hasEnded: (uid, since) => ends.haveAll(uid, watched.get(uid) ?? new Map(), since),
    revive(uid) {
      ends.forget(uid)
      told.delete(uid)
      if (!dead.delete(uid)) return
      // Connections that were redirected when the earlier life ended reach the new life again.
      options.release(uid)
      arriving.delete(uid)
      watched.delete(uid)
      changed()
    },
    inspect(pod) {
      if (dead.has(pod.uid)) {
        tellAgain(pod)
        return
      }
      const lost = lostContainer(pod, watched.get(pod.uid))
      if (lost === undefined) return
      const isEarly = arriving.has(pod.uid) && lostContainer(pod, undefined) === undefined
      if (matters(pod) && !isEarly) {
        void declare(pod, lost, 'has ended; another container runs in its place')
        return
      }
      const containerId = watched.get(pod.uid)?.get(lost)
      forgetContainer(pod.uid, lost)
      if (containerId !== undefined) unwatch(watchName({ uid: pod.uid, container: lost, containerId }))
    },
    async patch(pod, condition, signal) {
      const { type, reason } = condition
      const isContrary = type === podConditions.serving && reason !== servingReasons.died
      return dead.has(pod.uid) && isContrary ? {} : patch(pod, condition, signal)
    },
    arriving(pod) {
      // A pod that an earlier agent watched may have been on stage: its end is a death.
      const known = watched.get(pod.uid)
      const lives = livesOf(pod)
      if ([...lives].every(([name, life]) => known?.get(name) === life)) return
      watched.set(pod.uid, lives)
      arriving.add(pod.uid)
    },
    guarded(pod) {
      arriving.delete(pod.uid)
      watched.set(pod.uid, livesOf(pod))
    },
    recall(list) {
      for (const { name } of list) {
        const parsed = parseWatchName(name)
        if (parsed === undefined) continue
        const containers = watched.get(parsed.uid) ?? new Map<string, string>()
        watched.set(parsed.uid, containers.set(parsed.container, parsed.containerId))
      }
    },
    forget(uid) {
      ends.forget(uid)
      arriving.delete(uid)
      watched.delete(uid)
      dead.delete(uid)
      told.delete(uid)
    },
    known: () => new Set([...watched.keys(), ...dead.keys()]),
    async settled() {
      while (writing.size > 0) await Promise.all(writing)
    },
  }
  return deaths
}

/** Text for a death that `PagesLost` caused. */
export const lostPagesWhat = 'was killed, because the rest of its memory could not be loaded'
