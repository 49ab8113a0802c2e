/** Ends of primaries: noticed, judged, and told to the API server before anything else. */
import { podConditions, servingReasons } from '../../api/stage.ts'
import { backoffMs } from '../../kube/backoff.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Log } from '../../kube/log.ts'
import type { PodCondition } from '../conditions.ts'
import type { Death, Watched } from '../sentinel.ts'
import type { PodView } from './snapshot.ts'

export interface Deaths {
  /** Pods whose memory is gone, and whose memory (`slotName`) it was. A pod stays here until it is gone itself, or revived. */
  readonly dead: ReadonlyMap<string, string>
  /** From the sentinel: a watched process has ended. */
  onDeath(death: Death): void
  /** The memory of this pod is gone, however that came about. Said once for each pod. */
  declare(pod: PodView, container: string, what: string): Promise<void>
  /** Its slot has begun a new life in this pod: what died there is of no account any more. */
  revive(uid: string): void
  /** The pod as it is now: has something ended that nobody told? */
  inspect(pod: PodView): void
  /** Whether a condition may be written: of a pod that has died nobody but this says that it serves, or does not. */
  mayWrite(uid: string, condition: PodCondition): boolean
  /**
   * This pod is watched, and is about to go on stage: it is known here. That its app ends before it has answered is no
   * death: its agent sees that, and brings the memory back again.
   */
  arriving(pod: PodView): void
  /** What is watched of this pod, from now on. */
  guarded(pod: PodView): void
  /** What the sentinel watches already, at the start of an agent. */
  recall(watched: readonly Watched[]): void
  /** The pod does not exist any more, and nothing of it is watched. */
  forget(uid: string): void
  /** Uids of which something is known here. */
  known(): ReadonlySet<string>
  settled(): Promise<void>
}

export interface DeathsOptions {
  readonly podOf: (uid: string) => PodView | undefined
  /** Name of the slot that this pod holds or held, for the record. */
  readonly slotOf: (pod: PodView) => string
  /** Whether this pod is the primary of a slot, by its Lease. */
  readonly holds: (pod: PodView) => boolean
  /** Whether the end of this pod's processes is the end of memory that somebody else could go on with. */
  readonly matters: (pod: PodView) => boolean
  readonly patch: (pod: PodView, condition: PodCondition) => Promise<boolean>
  /** Its watch has no more to say: what was watched was of no account. */
  readonly unwatch: (name: string) => void
  /** All watches of this pod go, and it is open again. */
  readonly release: (uid: string) => void
  /** The dead set has changed, or what is watched has. */
  readonly changed: () => void
  /** Whether it was ended because memory that was still to come did not come. Asked at once. */
  readonly lostPages?: (uid: string) => boolean
  readonly onDeclared?: (pod: PodView, millisecondsSinceDeath: number | undefined) => void
  readonly clock: Clock
  readonly log: Log
}

export interface WatchName {
  readonly uid: string
  readonly container: string
  readonly containerId: string
}

/** Names of watches carry what an agent that starts anew has to know: whose process it was, in which life of which container. */
export const watchName = ({ uid, container, containerId }: WatchName): string =>
  `${uid}/${container}/${shortId(containerId)}`

export function parseWatchName(name: string): WatchName | undefined {
  const [uid, container, containerId, ...more] = name.split('/')
  if (!uid || !container || !containerId || more.length > 0) return undefined
  return { uid, container, containerId }
}

const livesOf = ({ containers }: PodView): Map<string, string> =>
  new Map(containers.map(({ name, containerId = '' }) => [name, shortId(containerId)]))

const shortId = (containerId: string): string => containerId.replace(/^.*:\/\//, '').slice(0, 16)

/** A cache shows within this time what was written. */
const showsWithinMs = 1_000

const patchBackoff = { initialMs: 20, maxMs: 2_000, jitter: 0.2 }

export function createDeaths(options: DeathsOptions): Deaths {
  const { podOf, slotOf, holds, matters, patch, unwatch, changed, onDeclared, clock, log } = options
  const dead = new Map<string, string>()
  /** By uid, then by container: the life that is watched. */
  const watched = new Map<string, Map<string, string>>()
  /** Uids of those that are watched and have not been on stage yet. */
  const arriving = new Set<string>()
  const writing = new Set<Promise<void>>()
  /** What is said of each dead pod, and since when (monotonic ms) the API server has it; undefined: it does not yet. */
  const told = new Map<string, { readonly condition: PodCondition; since: number | undefined }>()

  const tell = async (pod: PodView, condition: PodCondition, diedAt: number | undefined): Promise<void> => {
    for (let failures = 0; ; failures += 1) {
      try {
        const written = await patch(pod, condition)
        const ms = diedAt === undefined ? undefined : clock.now() - diedAt
        if (written) log.info({ pod: `${pod.namespace}/${pod.name}`, ms }, 'death told')
        if (written) onDeclared?.(pod, ms)
        const said = told.get(pod.uid)
        if (said !== undefined) said.since = clock.monotonic()
        return
      } catch (error) {
        log.warn({ err: error, pod: `${pod.namespace}/${pod.name}` }, 'a death could not be told, again')
        await clock.sleep(backoffMs(failures, patchBackoff))
        // Whoever is gone needs no word.
        if (podOf(pod.uid) === undefined) return
      }
    }
  }

  const declare = (pod: PodView, container: string, what: string, diedAt?: number): Promise<void> => {
    if (dead.has(pod.uid)) return Promise.resolve()
    const slot = slotOf(pod)
    dead.set(pod.uid, slot)
    const containerId = pod.containers.find(({ name }) => name === container)?.containerId ?? ''
    const condition = {
      type: podConditions.serving,
      status: 'False',
      reason: servingReasons.died,
      message: diedMessage(container, containerId, what, slot),
    } as const
    told.set(pod.uid, { condition, since: undefined })
    const written = track(tell(pod, condition, diedAt))
    changed()
    return written
  }

  const track = (work: Promise<void>): Promise<void> => {
    const tracked = work.finally(() => writing.delete(tracked))
    writing.add(tracked)
    return tracked
  }

  /** What somebody else was writing at that moment may have come to the API server after it. */
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
      log.warn({ err: error, pod: pod.name }, 'a death could not be told again')
    })
  }

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
      const pod = podOf(name.uid)
      if (pod !== undefined && arriving.has(pod.uid)) {
        // Its watch stays: whoever brings the memory back again takes it away first, and would lose the next one with it.
        log.info({ watch: death.name }, 'ended before it was on stage')
        return
      }
      // The first thing that happens: everything else can wait for the successor.
      if (pod !== undefined && matters(pod)) {
        const what = options.lostPages?.(pod.uid) === true ? lostPagesWhat : 'has ended'
        void declare(pod, name.container, what, Number(death.unixNs / 1_000_000n))
        log.info({ watch: death.name, grave: death.grave, graveUs: death.graveMicroseconds }, 'died')
        return
      }
      // Its slot is another's already: what is shut off stays shut off until the pod is gone.
      if (pod !== undefined && !holds(pod)) return
      log.info({ watch: death.name }, 'ended, and nobody else has its memory')
      forgetContainer(name.uid, name.container)
      unwatch(death.name)
      changed()
    },
    declare: (pod, container, what) => declare(pod, container, what),
    revive(uid) {
      told.delete(uid)
      if (!dead.delete(uid)) return
      // What was shut off when the earlier life ended is open to this one.
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
        void declare(pod, lost, 'has ended; another one runs in its place')
        return
      }
      const containerId = watched.get(pod.uid)?.get(lost)
      forgetContainer(pod.uid, lost)
      if (containerId !== undefined) unwatch(watchName({ uid: pod.uid, container: lost, containerId }))
    },
    mayWrite: (uid, { type, reason }) =>
      !dead.has(uid) || type !== podConditions.serving || reason === servingReasons.died,
    arriving(pod) {
      // What an earlier agent watched may have been on stage: its end is a death.
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

/**
 * The container of which another life runs than the one that was watched, or than the one that the pod's condition says
 * is on stage.
 */
export function lostContainer(
  pod: PodView,
  lives: ReadonlyMap<string, string> | undefined,
): string | undefined {
  const serves = pod.understudy && pod.serving?.status === 'True' ? pod.serving.message : undefined
  return pod.containers.find(({ name, containerId }) => {
    // A container that is about to be replaced has no id for a moment, or still the old one: both say nothing.
    if (containerId === undefined) return false
    const life = lives?.get(name)
    if (life !== undefined && life !== shortId(containerId)) return true
    return serves !== undefined && !serves.includes(containerId)
  })?.name
}

/** What is said of a death that came of `PagesLost`. */
export const lostPagesWhat = 'was ended, for memory that was still to come did not come'

const diedMessage = (container: string, containerId: string, what: string, slot: string): string =>
  `container ${container} (${containerId}) ${what}; it had the memory of ${slot}`

/** The slot, by its name, whose memory ended by what a condition `serving` with reason `Died` says. */
export const slotOfDeath = (message: string): string | undefined =>
  /it had the memory of (\S+)$/.exec(message)?.[1]

/** What the condition `serving` of a pod on stage says; `lostContainer` reads it. */
export const onStageMessage = (pod: PodView, epoch: number): string =>
  `epoch ${epoch}: ${pod.containers.map(({ name, containerId }) => `${name} is ${containerId}`).join(', ')}`
