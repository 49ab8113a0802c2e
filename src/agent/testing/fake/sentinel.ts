import { AgentError } from '../../../api/agent-errors.ts'
import type { Watched } from '../../sentinel/client.ts'
import type { TaskSentinel } from '../../tasks/task-context.ts'
import { pidOf } from './driver.ts'
import type { FakeMemory, FakeWatch } from './memory.ts'

export const watchesOf = (memory: FakeMemory): Watched[] =>
  [...memory.watches].map(([name, { process, heir, isClosed, died }]) => ({
    ...{ name, ...process },
    grave: heir === undefined ? 'none' : isClosed ? 'closed' : 'ready',
    diedUnixNs: died ? 1n : undefined,
  }))

/** A sentinel of processes that are words: watches, redirects and stops outlive agents, as the real ones do. */
export function fakeSentinel(memory: FakeMemory): TaskSentinel {
  const watchNamed = (name: string): FakeWatch => {
    const watch = memory.watches.get(name)
    if (watch === undefined) throw new AgentError('SentinelRefused', 'unknown-name')
    return watch
  }
  return {
    watch: async (name, process) => {
      const fresh: FakeWatch = { process, heir: undefined, isClosed: false, died: false }
      memory.watches.set(name, memory.watches.get(name) ?? fresh)
    },
    unwatch: async name => {
      const watch = memory.watches.get(name)
      if (watch?.isClosed === true) memory.waysLeft.push(watch.heir)
      memory.watches.delete(name)
    },
    watches: async () => watchesOf(memory),
    prepareRedirect: async ({ name, heir, netns, lastsMs }) => {
      if (memory.noGraves) throw new AgentError('SentinelRefused', 'grave: no nftables')
      const watch = watchNamed(name)
      if (netns === undefined && watch.heir === undefined) throw new AgentError('SentinelRefused', 'no-grave')
      memory.watches.set(name, { ...watch, heir, lastsMs, isClosed: watch.isClosed || watch.died })
    },
    redirect: async name => {
      const watch = watchNamed(name)
      if (watch.heir === undefined || memory.refusesRedirects)
        throw new AgentError('SentinelRefused', 'no-grave')
      memory.watches.set(name, { ...watch, isClosed: true })
      memory.burials.push(name)
      return { microseconds: 1 }
    },
    keepOut: async ({ pid }, from) => {
      if (memory.refusesRedirects) throw new AgentError('SentinelRefused', 'strangers: no nftables')
      memory.keptOut.set(pid, from)
    },
    undoRedirect: async name => void memory.watches.set(name, { ...watchNamed(name), isClosed: false }),
    stop: async ({ name }) => {
      if (memory.voters.refuseStops) throw new AgentError('Fenced')
      if (memory.refusesStops) throw new AgentError('SentinelRefused', 'traced')
      memory.stops.add(name)
      return { count: 1, skewMicroseconds: 0 }
    },
    keep: async name => {
      if (memory.stops.has(name)) memory.kept.add(name)
      return memory.stops.has(name)
    },
    isDone: async name => {
      if (!memory.stops.has(name)) throw new AgentError('SentinelRefused', 'unknown-name')
      return false
    },
    continue: async name => {
      if (!memory.stops.delete(name)) throw new AgentError('SentinelRefused', 'unknown-name')
      return { heldMicroseconds: 1, expired: false }
    },
    treeKill: async ({ pid }) => {
      memory.kills.push(pid)
      for (const [uid] of memory.running) if (pidOf(uid) === pid) memory.running.delete(uid)
      await memory.whileKilled()
      return { count: 1 }
    },
    guard: async request => {
      if (!memory.voters.answer) throw new AgentError('NoAnswers')
      memory.voters.guarded.set(request.name, request)
    },
    unguard: async (name, _, isShut = false) => {
      const isRunning = memory.running.has(name)
      memory.voters.unguarded.push({ name, isRunning, ...(isShut && { isShut }) })
      memory.voters.guarded.delete(name)
    },
    answered: async () => false,
    addPeer: async peer => void memory.voters.peers.set(peer.name, peer),
    removePeer: async name => void memory.voters.peers.delete(name),
    vote: async request => void memory.voters.votes.set(request.slot, request),
    unvote: async slot => void memory.voters.votes.delete(slot),
  }
}
