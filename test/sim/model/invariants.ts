/** What must hold, whatever has happened. Looked at again and again while a round runs, and once more at its end. */
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import { parseSlotLease, type SlotLease } from '../../../src/api/slot-lease.ts'
import { slotName } from '../../../src/checkpoint/manifest.ts'
import { leases, pods } from '../../../src/kube/resources.ts'
import { type Cluster, type ModelNode, setRef } from './cluster.ts'
import { answering } from './world.ts'

export interface Violation {
  /** Which rule. */
  readonly rule:
    | 'TwoRun'
    | 'MemoryThrownAway'
    | 'ImpostorSaved'
    | 'OldMemory'
    | 'NotServed'
    | 'WrongSlot'
    | 'OtherSetsMemory'
    | 'TooManyDeleted'
    | 'Crash'
  readonly at: number
  readonly what: string
}

/** Two that run with one memory, both where everything works, are one too many after so long, ms. */
const twoRunMs = 3_000
/** Pods that are led to another slot's memory by a machine where everything works, ms. */
const wrongSlotMs = 1_500
/** Beside the interval: what a transfer and a report may take, ms. */
const fetchMs = 4_000
/** A node where everything has worked for so long can be asked, ms. */
const soundMs = 12_000

export interface Observer {
  look(): void
  /** What is not as the set wants it; nothing, where every slot is served. */
  unserved(): readonly string[]
  /** After faults have ended and everybody had time. */
  atEnd(): void
  readonly violations: readonly Violation[]
}

export function createObserver(cluster: Cluster, intervalMs: number): Observer {
  const { time, server, nodes } = cluster
  const violations: Violation[] = []
  const told = new Set<string>()
  const soundSince = new Map<ModelNode, number>()
  const together = new Map<string, number>()
  const misled = new Map<string, number>()
  const lives = new Map<string, { lease: SlotLease; setUid: string }>()
  const savedGenesis = new Map<string, string>()
  /** Slots of each pod that ever was a primary. */
  const slotsOfPods = new Map<string, number>()
  let thawsSeen = 0
  let lastLook = 0

  const violate = (rule: Violation['rule'], key: string, what: string) => {
    if (told.has(`${rule} ${key}`)) return
    told.add(`${rule} ${key}`)
    violations.push({ rule, at: Math.round(time.now()), what })
  }
  const isSound = (node: ModelNode) =>
    node.machine.up &&
    !node.machine.kernel.paused &&
    !node.machine.partitioned &&
    !node.link.cut &&
    node.agent?.party.alive === true &&
    !node.agent.party.paused &&
    !node.agent.link.cut &&
    ![...node.agent.link.lagMs.values()].some(lag => lag !== 0) &&
    node.agent.link.refusals === 0
  const operatorWorks = () =>
    cluster.operators.some(each => each?.party.alive && !each.party.paused && !each.link.cut)

  const running = () =>
    nodes
      .filter(({ machine }) => machine.up)
      .flatMap(node =>
        [...node.machine.pods.values()].flatMap(pod =>
          pod.containers.flatMap(({ name, up, app }) =>
            up && app?.runsSince !== undefined ? [{ node, pod, container: name, app }] : [],
          ),
        ),
      )

  const lookForTwo = (elapsed: number) => {
    const byGenesis = Map.groupBy(
      running().filter(({ container }) => container !== 'proxy'),
      ({ container, app }) => `${container} ${app.memory.genesis}`,
    )
    for (const key of together.keys()) if ((byGenesis.get(key)?.length ?? 0) < 2) together.delete(key)
    for (const [key, apps] of byGenesis) {
      if (apps.length < 2) continue
      const isBad = operatorWorks() && apps.every(({ node }) => isSound(node))
      const ms = isBad ? (together.get(key) ?? 0) + elapsed : 0
      together.set(key, ms)
      if (ms > twoRunMs)
        violate(
          'TwoRun',
          key,
          `${key} runs in ${apps.map(({ pod, node }) => `${pod.name} on ${node.machine.name}`).join(' and ')} for ${ms} ms`,
        )
    }
  }

  const lookAtLives = () => {
    const set = server.find(backupPodSets, setRef)
    if (set === undefined) {
      lives.clear()
      return
    }
    const keepersOf = (lease: SlotLease, among: readonly string[]) =>
      nodes
        .filter(
          ({ machine, volatile }) =>
            machine.up &&
            among.includes(machine.name) &&
            (volatile.shelf.get(slotName(lease))?.length ?? 0) > 0,
        )
        .map(({ machine }) => machine.name)
    const there = new Set<string>()
    for (const object of server.list(leases)) {
      const lease = parseSlotLease(object)
      const owner = object.metadata.ownerReferences?.[0]?.uid ?? ''
      // Of a set that was deleted nobody is promised anything.
      if (
        lease === undefined ||
        object.metadata.deletionTimestamp !== undefined ||
        owner !== set.metadata.uid
      )
        continue
      const key = `${lease.set}/${lease.slot}`
      there.add(key)
      const before = lives.get(key)
      if (before !== undefined && before.setUid === owner && before.lease.life !== lease.life) {
        const all = nodes.map(({ machine }) => machine.name)
        const keepers = keepersOf(before.lease, all)
        if (keepers.length > 0)
          violate(
            'MemoryThrownAway',
            `${key} ${before.lease.life}`,
            `slot ${lease.slot} began a new life; ${keepers.join(', ')} kept the old one`,
          )
      }
      lives.set(key, { lease, setUid: owner })
    }
    // No round is as long as what a smaller set takes away is kept.
    for (const [key, { lease, setUid }] of lives) {
      if (there.has(key) || setUid !== set.metadata.uid) continue
      lives.delete(key)
      const keepers = keepersOf(lease, lease.kept ?? lease.holders)
      if (keepers.length > 0)
        violate(
          'MemoryThrownAway',
          `${key} ${lease.life}`,
          `slot ${lease.slot} was forgotten; ${keepers.join(', ')} kept its memory`,
        )
    }
  }

  const lookAtShelves = () => {
    for (const { machine, volatile } of nodes) {
      if (!machine.up) continue
      for (const [name, list] of volatile.shelf) {
        for (const stored of list) {
          for (const [container, memory] of machine.images.get(stored.dir) ?? []) {
            const key = `${name} ${container}`
            const first = savedGenesis.get(key)
            if (first === undefined) savedGenesis.set(key, memory.genesis)
            else if (first !== memory.genesis)
              violate(
                'ImpostorSaved',
                key,
                `${name} has memory of ${memory.genesis} beside ${first}'s, saved by ${stored.manifest.source.pod}`,
              )
          }
        }
      }
    }
  }

  const lookAtThaws = () => {
    for (; thawsSeen < cluster.thaws.length; thawsSeen += 1) {
      const thaw = cluster.thaws[thawsSeen]
      if (thaw === undefined) return
      const name = slotName(thaw.slot)
      const app = thaw.pod.containers.find(each => each.name === 'app')?.app
      if (app === undefined) continue
      const newest = nodes
        .filter(node => node.machine.up && time.now() - (soundSince.get(node) ?? time.now()) > soundMs)
        .flatMap(({ machine, volatile }) =>
          (volatile.shelf.get(name) ?? []).flatMap(({ dir, completedAt }) => {
            const memory = machine.images.get(dir)?.get('app')
            // What has come since it was decided nobody can have known.
            return memory === undefined || completedAt - 1_000_000 > thaw.at - fetchMs
              ? []
              : [{ memory, machine }]
          }),
        )
        .filter(({ memory }) => memory.genesis === app.memory.genesis)
        .sort((a, b) => b.memory.until - a.memory.until)[0]
      if (newest !== undefined && newest.memory.until - app.memory.until > intervalMs + fetchMs)
        violate(
          'OldMemory',
          `${name} ${thaw.epoch} ${thaw.generation}`,
          `${thaw.pod.name} goes on ${Math.round(newest.memory.until - app.memory.until)} ms behind what ${newest.machine.name} has`,
        )
    }
  }

  const lookForWrongSlots = (elapsed: number) => {
    const set = server.find(backupPodSets, setRef)
    for (const object of server.list(pods)) {
      const slot = object.metadata.labels?.[labels.slot]
      const type = object.metadata.labels?.[labels.type]
      if (slot !== undefined && (type === 'primary' || type === 'retired'))
        slotsOfPods.set(object.metadata.uid, Number(slot))
    }
    const machines = nodes.map(({ machine }) => machine)
    const seen = new Set<string>()
    for (const node of nodes) {
      for (const pod of node.machine.pods.values()) {
        const slot = slotsOfPods.get(pod.uid)
        if (slot === undefined) continue
        const answer = answering(machines, pod.ip)
        const of = answer && cluster.slotOfGenesis.get(answer.app.memory.genesis)
        if (of === undefined || answer === undefined || of.endsWith('/-') || of === `default/web/${slot}`)
          continue
        const key = `${pod.uid} ${of}`
        seen.add(key)
        const ms = isSound(node) && operatorWorks() ? (misled.get(key) ?? 0) + elapsed : 0
        misled.set(key, ms)
        if (ms > wrongSlotMs)
          violate(
            'WrongSlot',
            key,
            `who asks ${pod.name} for slot ${slot} is answered by ${of} in ${answer.pod.name}`,
          )
      }
    }
    for (const key of [...misled.keys()]) if (!seen.has(key)) misled.delete(key)
    if (set === undefined) return
    for (const { pod, app } of running()) {
      const owner = server.list(pods).find(({ metadata }) => metadata.uid === pod.uid)?.metadata
        .ownerReferences?.[0]?.uid
      const born = setOfGenesis.get(app.memory.genesis)
      if (owner === undefined) continue
      if (born === undefined) setOfGenesis.set(app.memory.genesis, owner)
      else if (born !== owner)
        violate(
          'OtherSetsMemory',
          app.memory.genesis,
          `${pod.name} goes on with the memory of a set that was deleted`,
        )
    }
  }
  const setOfGenesis = new Map<string, string>()

  const look = () => {
    const now = time.now()
    const elapsed = now - lastLook
    lastLook = now
    for (const node of nodes) {
      if (!isSound(node)) soundSince.delete(node)
      else if (!soundSince.has(node)) soundSince.set(node, now)
    }
    lookForTwo(elapsed)
    lookAtLives()
    lookAtShelves()
    lookAtThaws()
    lookForWrongSlots(elapsed)
    for (const failure of cluster.failures)
      violate(
        'Crash',
        String(failure),
        failure instanceof Error ? (failure.stack ?? failure.message) : String(failure),
      )
  }

  const unserved = (): readonly string[] => {
    const faults: string[] = []
    const set = server.find(backupPodSets, setRef)
    if (set === undefined) return faults
    const { replicas = 1, hotBackups = 0, coldBackups = 0 } = set.spec
    const machines = nodes.map(({ machine }) => machine)
    const mine = server
      .list(pods)
      .filter(
        ({ metadata }) =>
          metadata.ownerReferences?.[0]?.uid === set.metadata.uid && metadata.deletionTimestamp === undefined,
      )
    const count = (type: string) =>
      mine.filter(({ metadata }) => metadata.labels?.[labels.type] === type).length
    const counts = [count('primary'), count('hotbackup'), count('coldbackup')].join('/')
    const wanted = [replicas, hotBackups, coldBackups].join('/')
    if (counts !== wanted) faults.push(`${counts} pods where ${wanted} are wanted`)
    const slots = server.list(leases).flatMap(each => parseSlotLease(each) ?? [])
    const held = new Map<string, string>()
    for (const pod of mine) {
      if (pod.metadata.labels?.[labels.type] !== 'primary') continue
      const { name, uid } = pod.metadata
      const slot = pod.metadata.labels?.[labels.slot] ?? '-'
      const lease = slots.find(each => String(each.slot) === slot)
      if (held.has(slot)) faults.push(`slot ${slot} is ${held.get(slot)}'s and ${name}'s`)
      held.set(slot, name)
      if (lease?.holder.uid !== uid)
        faults.push(
          `the Lease of slot ${slot} names ${lease?.holder.name ?? 'nobody'}, and ${name} is its primary`,
        )
      const answer = answering(machines, pod.status?.podIP ?? '')
      if (answer?.pod.uid !== uid)
        faults.push(`who asks ${name} for slot ${slot} is answered by ${answer?.pod.name ?? 'nobody'}`)
      const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready')?.status
      if (ready !== 'True') faults.push(`${name} of slot ${slot} is not ready`)
    }
    for (const type of ['Ready', 'CheckpointReady']) {
      if (type !== 'Ready' && hotBackups === 0) continue
      const told = set.status?.conditions?.find(each => each.type === type)
      if (told?.status !== 'True')
        faults.push(`the set says ${type}=${told?.status} ${told?.reason}: ${told?.message}`)
    }
    return faults
  }

  return {
    look,
    unserved,
    violations,
    atEnd() {
      look()
      for (const fault of unserved()) violate('NotServed', fault, fault)
    },
  }
}
