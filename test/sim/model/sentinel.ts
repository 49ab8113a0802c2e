/** The sentinel of a machine, as an agent uses it. Its watches outlive the agent. */

import type { Death, SentinelClient, Watched } from '../../../src/agent/sentinel/client.ts'
import { parseWatchName } from '../../../src/agent/state/watch-name.ts'
import type { TaskContext } from '../../../src/agent/tasks/task-context.ts'
import { AgentError } from '../../../src/api/agent-errors.ts'
import type { Clock } from '../../../src/kube/clock.ts'
import { pidOf } from './driver.ts'
import type { VotingRequests } from './fence/requests.ts'
import type { Kubelet } from './kubelet.ts'
import type { VirtualTime } from './virtual-time.ts'
import { type Container, halt, letRun, type Machine, type PodOnNode, type Stop, type Watch } from './world.ts'

/**
 * Effects of a process' end, whatever its cause: the pod's address is redirected at once, the pod's other watched
 * containers end too, and the agent hears of both.
 */
export function noticeDeath(
  machine: Machine,
  time: VirtualTime,
  pod: PodOnNode,
  container: Container,
  endContainer: (pod: PodOnNode, container: Container) => void,
): void {
  const isHere = (watch: Watch, it: Container) =>
    watch.uid === pod.uid && watch.container === it.name && it.id.includes(watch.containerId)
  for (const watch of machine.watches.values()) {
    if (!isHere(watch, container) || watch.diedAt !== undefined) continue
    watch.diedAt = time.now()
    time.after(machine.kernel, 1, () => machine.listener?.(watch))
    if (watch.heir === undefined) continue
    closeGrave(machine, time, watch)
    for (const other of machine.watches.values()) {
      const sibling = pod.containers.find(it => it !== container && isHere(other, it))
      if (other.heir !== undefined && other.diedAt === undefined && sibling?.up) endContainer(pod, sibling)
    }
  }
}

/** Closes the address for the redirect's duration, counted from now. */
function closeGrave(machine: Machine, time: VirtualTime, watch: Watch): void {
  const pod = machine.pods.get(watch.uid)
  watch.grave = 'closed'
  watch.opensAt = watch.lastsMs === undefined ? Number.POSITIVE_INFINITY : time.now() + watch.lastsMs
  if (pod !== undefined && watch.heir !== undefined) pod.grave = watch.heir
  if (watch.lastsMs !== undefined)
    time.after(machine.kernel, watch.lastsMs, () => openDue(machine, time, watch))
}

function openDue(machine: Machine, time: VirtualTime, watch: Watch): void {
  const isLater = [...machine.watches.values()].some(
    ({ uid, grave, opensAt }) => uid === watch.uid && grave === 'closed' && opensAt > time.now(),
  )
  if (machine.watches.get(watch.name) === watch && watch.grave === 'closed' && !isLater) open(machine, watch)
}

function open(machine: Machine, { uid }: Watch): void {
  for (const other of machine.watches.values())
    if (other.uid === uid && other.grave === 'closed') other.grave = 'ready'
  const pod = machine.pods.get(uid)
  if (pod !== undefined) pod.grave = undefined
}

/** @returns true if a stop of this name existed */
function letGo(machine: Machine, time: VirtualTime, name: string): boolean {
  const stop = machine.stops.get(name)
  for (const app of stop?.apps ?? []) if (stop?.pod !== undefined) letRun(stop.pod, app, time.now())
  return machine.stops.delete(name)
}

/** The connection of an agent ends: the sentinel resumes the processes it had stopped, except stops that are kept. */
export function letLost(machine: Machine, time: VirtualTime): void {
  for (const [name, { isKept }] of machine.stops) if (!isKept) letGo(machine, time, name)
}

export const probedMs = 500

type Sentinel = Omit<TaskContext['sentinel'], keyof VotingRequests> & Pick<SentinelClient, 'undoRedirect'>

export function createModelSentinel(
  machine: Machine,
  time: VirtualTime,
  clock: Clock,
  kubelet: () => Kubelet,
): Sentinel {
  const answer = () => clock.sleep(1)
  /** The kubelet probes, and notices after a while which apps answer. */
  const soon = () => time.after(machine.kernel, probedMs, () => kubelet().look())
  const known = (name: string): Watch => {
    const watch = machine.watches.get(name)
    if (watch === undefined) throw new AgentError('SentinelRefused', 'unknown-name')
    return watch
  }
  /** Resumes the apps that ran when they were stopped; frozen clones stay frozen. */
  const go = (name: string): boolean => {
    const isThere = letGo(machine, time, name)
    if (isThere) soon()
    return isThere
  }
  const expire = (name: string, stop: Stop) => {
    if (machine.stops.get(name) !== stop) return
    if (time.now() < stop.until) time.after(machine.kernel, stop.until - time.now(), () => expire(name, stop))
    else go(name)
  }
  return {
    async watch(name) {
      await answer()
      const parsed = parseWatchName(name)
      if (parsed === undefined) throw new AgentError('SentinelRefused', 'malformed')
      const pod = machine.pods.get(parsed.uid)
      const container = pod?.containers.find(each => each.name === parsed.container)
      const present = machine.watches.get(name)
      if (present?.diedAt !== undefined) throw new AgentError('SentinelRefused', 'busy')
      if (container === undefined || !container.up || !container.id.includes(parsed.containerId))
        throw new AgentError('ProcessGone')
      if (present !== undefined) return
      machine.watches.set(name, {
        ...{ name, ...parsed, heir: undefined, lastsMs: undefined, opensAt: 0, diedAt: undefined },
        grave: 'none',
      })
    },
    async unwatch(name) {
      await answer()
      machine.watches.delete(name)
    },
    async watches() {
      await answer()
      return [...machine.watches.values()].map(watch => watchedOf(time, watch))
    },
    async prepareRedirect({ name, netns, heir, lastsMs }) {
      await answer()
      const watch = known(name)
      if (netns === undefined && watch.heir === undefined) throw new AgentError('SentinelRefused', 'no-grave')
      if (!machine.graves) throw new AgentError('SentinelRefused', 'grave-failed')
      watch.heir = heir
      watch.lastsMs = lastsMs
      const isClosed = [...machine.watches.values()].some(
        other => other.uid === watch.uid && other.grave === 'closed',
      )
      if (isClosed || watch.diedAt !== undefined) closeGrave(machine, time, watch)
      else watch.grave = 'ready'
    },
    async redirect(name) {
      await answer()
      const watch = known(name)
      if (watch.heir === undefined) throw new AgentError('SentinelRefused', 'no-grave')
      closeGrave(machine, time, watch)
      return { microseconds: 1 }
    },
    async undoRedirect(name) {
      await answer()
      const watch = known(name)
      if (watch.heir === undefined) throw new AgentError('SentinelRefused', 'no-grave')
      open(machine, watch)
    },
    async stop({ name, cgroups, deadlineMs }) {
      await answer()
      if (machine.refusesStops) throw new AgentError('SentinelRefused', 'traced')
      const pod = machine.pods.get(cgroups[0] ?? '')
      if (pod?.frozen !== undefined) throw new AgentError('Fenced')
      const apps = (pod?.containers ?? []).flatMap(({ up, app }) =>
        pod !== undefined && up && app !== undefined && halt(pod, app, time.now()) ? [app] : [],
      )
      const stop = { pod, apps, isKept: false, until: time.now() + deadlineMs }
      machine.stops.set(name, stop)
      soon()
      expire(name, stop)
      return { count: apps.length, skewMicroseconds: 0 }
    },
    async keep(name, deadlineMs) {
      await answer()
      const stop = machine.stops.get(name)
      if (stop !== undefined) {
        Object.assign(stop, { isKept: true, until: time.now() + deadlineMs })
        expire(name, stop)
      }
      return stop !== undefined
    },
    async isDone(name) {
      await answer()
      if (!machine.stops.has(name)) throw new AgentError('SentinelRefused', 'unknown-name')
      return false
    },
    async continue(name) {
      await answer()
      return { heldMicroseconds: 1, expired: !go(name) }
    },
    async keepOut({ pid }, from) {
      // Nearly all lists are empty, and change nothing.
      if (from.length > 0) await answer()
      for (const pod of machine.pods.values())
        if (pod.containers.some(({ up, id }) => up && pidOf(id) === pid)) pod.keptOut = new Set(from)
    },
    async treeKill({ pid }) {
      await answer()
      for (const pod of machine.pods.values())
        for (const container of pod.containers)
          if (container.up && pidOf(container.id) === pid) kubelet().endContainer(pod, container, 'agent')
      return { count: 1 }
    },
  }
}

const unixNs = ({ epoch }: VirtualTime, ms: number): bigint => BigInt(epoch + Math.round(ms)) * 1_000_000n

export const deathOf = (time: VirtualTime, { name, diedAt = 0, grave }: Watch): Death => ({
  name,
  unixNs: unixNs(time, diedAt),
  grave,
  graveMicroseconds: 100,
})

const watchedOf = (time: VirtualTime, { name, diedAt, grave, containerId }: Watch): Watched => ({
  name,
  ...{ pid: pidOf(containerId), start: 1, grave },
  diedUnixNs: diedAt === undefined ? undefined : unixNs(time, diedAt),
})
