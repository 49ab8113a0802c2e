/** The invariants. The round checks them repeatedly while it runs, and once more at its end. */
import { type BackupPodSet, backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import { type NodeReport, nodeReports } from '../../../src/api/node-report.ts'
import { parseSlotLease as parse, type SlotLease, slotLeaseName } from '../../../src/api/slot-lease.ts'
import { servingOf } from '../../../src/backuppodset/memory/stage.ts'
import { slotName } from '../../../src/checkpoint/manifest.ts'
import { createMemo } from '../../../src/kube/memo.ts'
import { type KubeObject, keyOf } from '../../../src/kube/object.ts'
import { type Lease, leases, type Pod, pods, resourceName } from '../../../src/kube/resources.ts'
import { stepsBehind } from '../../../src/succession/age.ts'
import { handoverDeadlineMs } from '../../../src/succession/deadlines.ts'
import { isKept as isSaved } from '../../../src/succession/kept.ts'
import { type Cluster, type ModelNode, nodeGraceMs, setRef, type Thawed } from './cluster.ts'
import { type Answering, createUnsavedWatch, type Unsaved } from './unsaved.ts'
import { type App, answering, answers, type PodOnNode } from './world.ts'

export interface Violation {
  /** The violated rule. */
  readonly rule:
    | 'TwoRun'
    | 'MemoryThrownAway'
    | 'ImpostorSaved'
    | 'OldMemory'
    | 'NotServed'
    | 'WrongSlot'
    | 'OtherSetsMemory'
    | 'ImpostorAnswers'
    | 'LongOutage'
    | 'Needless'
    | 'NotCalled'
    | 'NotConsented'
    | 'SlotMoved'
    | 'TooManyDeleted'
    | 'NotSaved'
    | 'Crash'
  readonly at: number
  readonly what: string
}

/** @param slack how many times longer than in the model everything may take */
const boundsOf = (slack: number) => ({
  /** Maximum time for which two apps may run with one memory, if everything works on both nodes, ms. */
  twoRunMs: 3_000 * slack,
  /** Maximum time for which a working machine may lead a pod's connections to another slot's memory, ms. */
  wrongSlotMs: 1_500 * slack,
  /** Time for a transfer and a report, in addition to the interval, ms. */
  fetchMs: 4_000 * slack,
  /** A node that has worked for this long can answer, ms. */
  soundMs: 12_000 * slack,
  /** Maximum time for which an app started in place of one whose memory is kept may answer on a working node, ms. */
  impostorMs: 5_000 * slack,
  /**
   * Maximum time without service of a slot that has a ready backup while everything needed works, ms, beside the
   * `unreadySeconds` of its set.
   */
  outageMs: 31_000 * slack,
  /** Maximum delay of Leases at an agent that the operator waits for, ms. */
  lateMs: 5_000,
  /** Time between two checks, ms. */
  lookMs: 500,
  /**
   * An agent that was started while its node was cut off begins only after its first requests have failed, ms. Until
   * then it counts as absent.
   */
  firstWordMs: 8_000 * slack,
  /** Time between an agent's last check of a Lease and its action on it, ms. */
  actMs: 300 * slack,
  /** An operator need not know of events that are more recent than this, ms. */
  newsMs: 500 * slack,
  /** From an edit to the end of the pass that has not seen it yet, ms. */
  passMs: 50 * slack,
  /** From the API server to an operator and back, ms. */
  wayMs: 10 * slack,
})

export interface Observer {
  look(): void
  /** Returns the differences from the set's spec; empty if every slot is served. */
  unserved(): readonly string[]
  /** Returns primaries that should have been saved meanwhile; empty if every primary is saved. */
  unsaved(): readonly string[]
  /** The check after all faults have ended and everything had time to recover. */
  atEnd(): void
  readonly violations: readonly Violation[]
}

export function createObserver(cluster: Cluster, intervalMs: number, slack: number): Observer {
  const bounds = boundsOf(slack)
  const { twoRunMs, wrongSlotMs, fetchMs, soundMs, impostorMs, outageMs, lateMs } = bounds
  const { actMs, newsMs, passMs, wayMs, lookMs, firstWordMs } = bounds
  const { time, server, nodes } = cluster
  const parseSlotLease = createMemo(parse)
  const violations: Violation[] = []
  const told = new Set<string>()
  const soundSince = new Map<ModelNode, number>()
  const together = new Map<string, number>()
  const misled = new Map<string, number>()
  const lives = new Map<string, { lease: SlotLease; setUid: string }>()
  /** When a report or a Lease first said that a life has a copy. */
  const toldAt = new Map<string, number>()
  /** Lives that ended before that: the operator does not wait for a node that may have saved for the first time. */
  const endedUntold = new Set<string>()
  const savedGenesis = new Map<string, string>()
  /** Slot of each pod that ever was a primary. */
  const slotsOfPods = new Map<string, number>()
  /** The primaries of each slot and the time of their takeover, the newest first; by the name of the slot's Lease. */
  const holders = new Map<string, { readonly at: number; readonly uid: string; readonly epoch: number }[]>()
  const impostors = new Map<string, number>()
  const outages = new Map<string, number>()
  /** When the Lease of a removed slot that named a pod was deleted, by the uid of the pod. */
  const letGoAt = new Map<string, number>()
  /** Pods that were deleted or whose app ended by itself or hung: another pod is to succeed them. */
  const broken = new Set<string>()
  /**
   * Primaries that were deleted with a grace period. After a forced deletion only an agent can know when the pod has
   * ended. A pod leaves this set when its node is cut off until Kubernetes considers it lost: its kubelet has not heard
   * of the deletion, and only a fence could keep the app from running when the node is back.
   */
  const goingAsHolder = new Set<string>()
  /** From when each agent counts, ms; see `firstWordMs`. */
  const agentsCountFrom = new Map<NonNullable<ModelNode['agent']>, number>()
  /** Since when each pod has been terminating. */
  const endsSince = new Map<string, number>()
  const unsavedWatch = createUnsavedWatch(slack)
  let notSaved: readonly Unsaved[] = []
  let settled: { readonly of: string; readonly slots: string } | undefined
  let operatorsWorkSince: number | undefined
  let changedAt = 0
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
  /** True if the node's agent receives Leases a little late, and everything else works. */
  const isLate = ({ machine, link, agent }: ModelNode) => {
    const lag = agent?.link.lagMs
    if (lag?.size !== 1 || machine.partitioned || !machine.up || machine.kernel.paused) return false
    const ms = lag.get(resourceName(leases)) ?? -1
    return ms >= 0 && ms <= lateMs && !link.cut && agent?.party.alive === true && !agent.party.paused
  }
  /** True if the kubelet ends the pod in time, with or without an agent, at a time that the operator knows. */
  const isGoing = ({ machine, link }: ModelNode, { uid }: PodOnNode) =>
    goingAsHolder.has(uid) && machine.up && !machine.kernel.paused && !machine.partitioned && !link.cut
  /** Like `isSound`, and the agent has begun, even if it was started while it was cut off. */
  const isAtWork = (node: ModelNode) =>
    isSound(node) && node.agent !== undefined && time.now() >= (agentsCountFrom.get(node.agent) ?? 0)
  const operatorWorks = () =>
    cluster.operators.some(each => each?.party.alive && !each.party.paused && !each.link.cut)

  const isSteady = (each: Cluster['operators'][number]) =>
    each === undefined ||
    (!each.party.paused &&
      !each.link.cut &&
      each.link.lagMs.size === 0 &&
      each.link.refusals + each.link.lostAnswers === 0 &&
      !each.link.losesCreates)

  const running = () => {
    const found: { node: ModelNode; pod: PodOnNode; container: string; app: App }[] = []
    for (const node of nodes) {
      if (!node.machine.up) continue
      for (const pod of node.machine.pods.values())
        for (const { name, up, app } of pod.containers)
          if (up && app?.runsSince !== undefined) found.push({ node, pod, container: name, app })
    }
    return found
  }

  const lookForTwo = (elapsed: number) => {
    const byGenesis = Map.groupBy(
      running().filter(({ container }) => container !== 'proxy'),
      ({ container, app }) => `${container} ${app.memory.genesis}`,
    )
    for (const key of together.keys()) if ((byGenesis.get(key)?.length ?? 0) < 2) together.delete(key)
    for (const [key, apps] of byGenesis) {
      if (apps.length < 2) continue
      const isBad =
        operatorWorks() && apps.every(({ node, pod }) => isAtWork(node) || isLate(node) || isGoing(node, pod))
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
            // The decision could not know of a copy younger than `fetchMs`.
            (volatile.shelf.get(slotName(lease)) ?? []).some(
              ({ completedAt }) => time.now() - (completedAt - 1_000_000) > fetchMs,
            ),
        )
        .map(({ machine }) => machine.name)
    const there = new Set<string>()
    for (const object of server.list(leases)) {
      const lease = parseSlotLease(object)
      const owner = object.metadata.ownerReferences?.[0]?.uid ?? ''
      // A deleted set has no guarantees.
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
        if (keepers.length > 0 && !endedUntold.has(before.lease.life))
          violate(
            'MemoryThrownAway',
            `${key} ${before.lease.life}`,
            `slot ${lease.slot} began a new life; ${keepers.join(', ')} kept the old one`,
          )
      }
      lives.set(key, { lease, setUid: owner })
    }
    // Slots that a smaller set gives up retain their memory longer than a round lasts, so their Leases must still
    // exist.
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

  /** A pod that is put on stage must be its slot's primary at that moment. */
  const lookAtCall = ({ at, pod, slot, epoch }: Thawed, name: string) => {
    const called = holders.get(`${slot.namespace}/${slotLeaseName(slot.set, slot.slot)}`) ?? []
    const isCalled = called.some(
      (one, index) =>
        one.uid === pod.uid &&
        one.at <= at &&
        (called[index - 1]?.at ?? Number.POSITIVE_INFINITY) >= at - actMs,
    )
    if (!isCalled)
      violate(
        'NotCalled',
        `${name} ${pod.uid} ${epoch}`,
        `${pod.name} goes on stage, and the slot is another's`,
      )
  }

  /** Checks that no pod resumes the memory of an app that ran until then on a working node and in a healthy pod. */
  const lookForNeed = ({ at, pod }: Thawed, genesis: string) => {
    for (const node of nodes) {
      const since = soundSince.get(node)
      if (since === undefined || at - since < soundMs) continue
      const { machine } = node
      const ended = machine.endings.filter(
        ending => ending.genesis === genesis && ending.by === 'agent' && at - ending.at < soundMs,
      )
      const runs = running().filter(({ node: of, app }) => of === node && app.memory.genesis === genesis)
      const uids = [...ended.map(({ uid }) => uid), ...runs.map(one => one.pod.uid)]
      const uid = uids.find(one => one !== pod.uid && !broken.has(one))
      if (uid === undefined) continue
      violate('Needless', `${genesis} ${uid}`, `${pod.name} goes on although nothing was wrong with ${uid}`)
    }
  }

  const lookAtThaws = () => {
    for (; thawsSeen < cluster.thaws.length; thawsSeen += 1) {
      const thaw = cluster.thaws[thawsSeen]
      if (thaw === undefined) return
      const name = slotName(thaw.slot)
      lookAtCall(thaw, name)
      const app = thaw.pod.containers.find(each => each.name === 'app')?.app
      if (app === undefined) continue
      lookForNeed(thaw, app.memory.genesis)
      const newest = nodes
        .filter(node => node.machine.up && time.now() - (soundSince.get(node) ?? time.now()) > soundMs)
        .flatMap(({ machine, volatile }) =>
          (volatile.shelf.get(name) ?? []).flatMap(({ dir, completedAt }, _, { length }) => {
            const memory = machine.images.get(dir)?.get('app')
            const at = completedAt - 1_000_000
            if (at > thaw.at) return []
            const isNew = at > thaw.at - fetchMs
            // The decision could not know of a copy younger than `fetchMs`. Older copies beside it, however, show that
            // the node already had memory.
            if (memory === undefined || (isNew && length === 1)) return []
            return [{ memory, machine, until: Math.min(memory.until, thaw.at - fetchMs) }]
          }),
        )
        .filter(({ memory }) => memory.genesis === app.memory.genesis)
        .sort((a, b) => b.until - a.until)[0]
      if (newest !== undefined && newest.until - app.memory.until > intervalMs + fetchMs)
        violate(
          'OldMemory',
          `${name} ${thaw.epoch} ${thaw.generation}`,
          `${thaw.pod.name} goes on ${Math.round(newest.until - app.memory.until)} ms behind what ${newest.machine.name} has`,
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
        const answer = answering(machines, pod.ip, time.now())
        const of = answer && cluster.slotOfGenesis.get(answer.app.memory.genesis)
        if (of === undefined || answer === undefined || of.endsWith('/-') || of === `default/web/${slot}`)
          continue
        const key = `${pod.uid} ${of}`
        seen.add(key)
        const ms = isAtWork(node) && operatorWorks() ? (misled.get(key) ?? 0) + elapsed : 0
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

  /** How many endings of each machine have been noted. */
  const endsNoted = new Map<ModelNode, number>()
  const noteEnds = () => {
    for (const node of nodes) {
      const { endings } = node.machine
      for (const { uid, by } of endings.slice(endsNoted.get(node) ?? 0)) if (by === 'itself') broken.add(uid)
      endsNoted.set(node, endings.length)
    }
    for (const { pod, app } of running()) if (!answers(app, time.now())) broken.add(pod.uid)
  }

  /** True if a machine has a copy of this life, whatever its agent reports. */
  const isKept = (lease: SlotLease) =>
    nodes.some(
      ({ machine, volatile }) => machine.up && (volatile.shelf.get(slotName(lease))?.length ?? 0) > 0,
    )

  /** Returns the slots of the existing set, and the app that answers at the address of each slot's primary. */
  const slotsServed = () => {
    const set = server.find(backupPodSets, setRef)
    const machines = nodes.map(({ machine }) => machine)
    return server.list(leases).flatMap(object => {
      const lease = parseSlotLease(object)
      const isOurs = object.metadata.ownerReferences?.[0]?.uid === set?.metadata.uid
      if (set === undefined || lease === undefined || !isOurs || lease.retainedSince !== undefined) return []
      const pod = server.list(pods).find(({ metadata }) => metadata.uid === lease.holder.uid)
      const node = nodes.find(({ machine }) => machine.name === pod?.spec?.nodeName)
      const answer = pod && answering(machines, pod.status?.podIP ?? '', time.now())
      return [{ set, lease, pod, node, answer }]
    })
  }

  const lookAtSlots = (elapsed: number) => {
    const seen = new Set<string>()
    for (const { set, lease, node, answer, pod } of slotsServed()) {
      const name = slotName(lease)
      seen.add(name)
      const works = operatorsWorkSince !== undefined && time.now() - changedAt > soundMs
      const of = savedGenesis.get(`${name} app`)
      const isImpostor =
        works &&
        node !== undefined &&
        isAtWork(node) &&
        of !== undefined &&
        answer !== undefined &&
        answer.pod.uid === pod?.metadata.uid &&
        answer.app.memory.genesis !== of &&
        set.spec.paused !== true &&
        isKept(lease)
      const impostorFor = isImpostor ? (impostors.get(name) ?? 0) + elapsed : 0
      impostors.set(name, impostorFor)
      if (impostorFor > impostorMs)
        violate(
          'ImpostorAnswers',
          `${name} ${answer?.pod.uid}`,
          `who asks for slot ${lease.slot} is answered by what was started in ${answer?.pod.name} for ${impostorFor} ms`,
        )
      const isOut = works && answer === undefined && set.spec.paused !== true && hasBackup(lease)
      const outFor = isOut ? (outages.get(name) ?? 0) + elapsed : 0
      outages.set(name, outFor)
      const patienceMs = (set.spec.failover?.unreadySeconds ?? 0) * 1_000
      if (outFor > outageMs + patienceMs)
        violate(
          'LongOutage',
          name,
          `nobody has answered for slot ${lease.slot} for ${outFor} ms, and there is a backup`,
        )
    }
    for (const each of [impostors, outages])
      for (const name of each.keys()) if (!seen.has(name)) each.delete(name)
  }

  /** True if the slot has a hot backup on a working node, with memory of the slot, and no node has newer memory. */
  const hasBackup = (lease: SlotLease) => {
    const newestAt = (node: ModelNode | undefined) => {
      const newest = node?.volatile.shelf.get(slotName(lease))?.[0]?.manifest
      const { epoch = 0, generation = 0, takenAt = '' } = newest ?? {}
      return { epoch, generation, takenAt: Date.parse(takenAt) || 0 }
    }
    const all = nodes.filter(({ machine }) => machine.up).map(newestAt)
    return server.list(pods).some(({ metadata, spec }) => {
      const node = nodes.find(({ machine }) => machine.name === spec?.nodeName)
      const since = node && soundSince.get(node)
      return (
        metadata.labels?.[labels.type] === 'hotbackup' &&
        metadata.deletionTimestamp === undefined &&
        metadata.uid !== lease.holder.uid &&
        !broken.has(metadata.uid) &&
        since !== undefined &&
        time.now() - since > soundMs &&
        (node?.volatile.shelf.get(slotName(lease))?.length ?? 0) > 0 &&
        all.every(other => stepsBehind(newestAt(node), other, intervalMs) === 0)
      )
    })
  }

  /** Returns the primaries whose app answers, with what is saved of it on other machines. */
  const answeringPrimaries = (set: BackupPodSet): Answering[] => {
    const machines = nodes.map(({ machine }) => machine)
    const slots = server.list(leases).flatMap(object => ({
      owner: object.metadata.ownerReferences?.[0]?.uid,
      lease: parseSlotLease(object),
    }))
    const isWhole = ({ slowStartMs, slowRestoreMs, slowAnswerMs, refusesStops }: ModelNode['machine']) =>
      slowStartMs + slowRestoreMs + slowAnswerMs === 0 && !refusesStops
    const isQuiet =
      time.now() >= cluster.collectsFrom && nodes.every(node => isAtWork(node) && isWhole(node.machine))
    return server.list(pods).flatMap(({ metadata, spec, status }): Answering[] => {
      const { uid, ownerReferences, deletionTimestamp } = metadata
      if (metadata.labels?.[labels.type] !== 'primary' || deletionTimestamp !== undefined) return []
      if (ownerReferences?.[0]?.uid !== set.metadata.uid) return []
      const node = nodes.find(({ machine }) => machine.name === spec?.nodeName)
      const answer = answering(machines, status?.podIP ?? '', time.now())
      if (node === undefined || answer?.pod.uid !== uid) return []
      const { genesis } = answer.app.memory
      const its = slots.filter(({ lease }) => String(lease?.slot) === metadata.labels?.[labels.slot])
      // The Lease of a deleted set of this name is in the way.
      const isFree = its.every(({ owner }) => owner === set.metadata.uid)
      const lease = its[0]?.lease
      const copies = nodes
        .filter(({ machine }) => machine.up && machine !== node.machine)
        .flatMap(({ machine, volatile }) =>
          (lease ? (volatile.shelf.get(slotName(lease)) ?? []) : []).flatMap(
            ({ dir }) => machine.images.get(dir)?.get('app') ?? [],
          ),
        )
        .filter(memory => memory.genesis === genesis)
      // Another app runs in the primary, and a node that fails has the memory of the slot: there is no limit for that.
      const of = lease && savedGenesis.get(`${slotName(lease)} app`)
      const isWaitedFor =
        of !== undefined &&
        of !== genesis &&
        nodes.some(other => lease?.kept?.includes(other.machine.name) && !isAtWork(other))
      const works =
        operatorsWorkSince !== undefined &&
        isAtWork(node) &&
        isWhole(node.machine) &&
        isFree &&
        lease?.unsaved !== true &&
        !isWaitedFor &&
        nodes.some(other => other !== node && isAtWork(other))
      const savedUntil = copies.length === 0 ? undefined : Math.max(...copies.map(({ until }) => until))
      return [{ pod: uid, genesis, savedUntil, works, quiet: isQuiet }]
    })
  }

  const lookForUnsaved = () => {
    const set = server.find(backupPodSets, setRef)
    const isSavedAtAll = set?.spec.checkpoint !== undefined && set.spec.paused !== true
    notSaved = unsavedWatch.look(time.now(), intervalOf(set), isSavedAtAll ? answeringPrimaries(set) : [])
    for (const { pod, ms, limitMs } of notSaved)
      if (ms > limitMs)
        violate('NotSaved', pod, `${nameOfPod(pod)} answers and has not been saved for ${ms} ms`)
  }
  const nameOfPod = (uid: string) =>
    server.list(pods).find(({ metadata }) => metadata.uid === uid)?.metadata.name ?? uid
  const intervalOf = (set: BackupPodSet | undefined) =>
    1_000 * (Number.parseInt(set?.spec.checkpoint?.interval ?? '', 10) || intervalMs / 1_000)

  /** While a set's numbers stay the same, so do its slots. The operator may choose which slots a smaller set keeps. */
  const lookForMoves = () => {
    const set = server.find(backupPodSets, setRef)
    if (set === undefined || set.status?.observedGeneration !== set.metadata.generation) return
    const { replicas = 1 } = set.spec
    const primaries = server
      .list(pods)
      .filter(
        ({ metadata }) =>
          metadata.labels?.[labels.type] === 'primary' &&
          metadata.deletionTimestamp === undefined &&
          metadata.ownerReferences?.[0]?.uid === set.metadata.uid,
      )
    const numbers = primaries.flatMap(({ metadata }) => metadata.labels?.[labels.slot] ?? [])
    if (numbers.length !== replicas || new Set(numbers).size !== replicas) return
    const now = { of: `${set.metadata.uid} ${set.metadata.generation}`, slots: numbers.sort().join() }
    if (settled !== undefined && settled.of === now.of && settled.slots !== now.slots)
      violate('SlotMoved', now.slots, `slots ${settled.slots} have become ${now.slots}`)
    settled = now
  }

  /** Since when each primary has been stopped for a successor. */
  const standsSince = new Map<string, number>()
  const lookAtStops = () => {
    const uids = nodes.flatMap(({ machine }) =>
      [...machine.stops.keys()].flatMap(name => /^handover-(.*)$/.exec(name)?.[1] ?? []),
    )
    for (const uid of standsSince.keys()) if (!uids.includes(uid)) standsSince.delete(uid)
    for (const uid of uids) if (!standsSince.has(uid)) standsSince.set(uid, time.now())
  }

  /**
   * A primary that is stopped because its Lease requests a handover must not be ended for that: its node resumes it at
   * the deadline.
   */
  const lookAtEnd = (before: SlotLease, { slot, holder, ending }: SlotLease) => {
    if (ending !== holder.uid || before.ending === ending || before.handover === undefined) return
    const stands = nodes.some(node => isSound(node) && node.machine.stops.has(`handover-${ending}`))
    // If one successor failed and another one is tried, the stop counts from the first.
    const sinceMs = time.now() - (standsSince.get(ending) ?? time.now())
    if (stands && sinceMs < handoverDeadlineMs(0) && !broken.has(ending))
      violate(
        'Needless',
        `handover ${ending}`,
        `${holder.name} is ended while it stands still to hand slot ${slot} over`,
      )
  }

  const tell = (life: string) => {
    if (!toldAt.has(life)) toldAt.set(life, time.now())
  }

  /** Notes the copies that a changed object reports. */
  const lookAtWords = (resource: string, object: KubeObject) => {
    if (resource === resourceName(nodeReports))
      for (const report of (object as NodeReport).status?.slots ?? []) if (isSaved(report)) tell(report.life)
    if (resource === resourceName(leases)) {
      const lease = parseSlotLease(object as Lease)
      if (lease?.kept !== undefined && lease.kept.length > 0) tell(lease.life)
    }
    // The death of a terminating pod may come too late: the operator may already be creating its successor.
    const isDeath = resource === resourceName(pods) && servingOf(object as Pod).death !== undefined
    if (isDeath && object.metadata.deletionTimestamp === undefined)
      for (const { lease } of lives.values()) if (lease.holder.uid === object.metadata.uid) tell(lease.life)
  }

  server.subscribe((resource, { type, object, old }) => {
    lookAtWords(resource, object)
    if (resource === resourceName(backupPodSets)) {
      const was = old?.metadata.generation
      if (was !== object.metadata.generation) changedAt = time.now()
    }
    if (resource === resourceName(pods) && type === 'DELETED') {
      broken.add(object.metadata.uid)
      goingAsHolder.delete(object.metadata.uid)
    } else if (resource === resourceName(pods)) lookAtDeletion(object as Pod, old as Pod | undefined)
    if (resource !== resourceName(leases)) return
    const before = old && parseSlotLease(old as Lease)
    const lease = parseSlotLease(object as Lease)
    if (lease === undefined) return
    if (type === 'DELETED' && lease.retainedSince !== undefined) letGoAt.set(lease.holder.uid, time.now())
    const owner = object.metadata.ownerReferences?.[0]?.uid
    const list = holders.get(keyOf(object)) ?? []
    holders.set(keyOf(object), list)
    if (list[0]?.uid !== lease.holder.uid || list[0].epoch !== lease.epoch)
      list.unshift({ at: time.now(), uid: lease.holder.uid, epoch: lease.epoch })
    // A deleted set has no guarantees: agents resume its stopped processes, and the operator may not know yet.
    if (owner !== server.find(backupPodSets, setRef)?.metadata.uid) return
    if (before !== undefined) lookAtEnd(before, lease)
    if (before !== undefined && before.life !== lease.life) {
      const told = toldAt.get(before.life)
      if (told === undefined || time.now() - told < wayMs) endedUntold.add(before.life)
    }
    if (before === undefined || before.epoch >= lease.epoch || before.handover !== lease.holder.uid) return
    const own = savedGenesis.get(`${slotName(before)} app`)
    // The app there may be a fresh one, started in place of a dead one. A node that is cut off for long is lost, so its
    // consent is not needed.
    const goesOn = running().find(
      ({ node, pod, app }) =>
        pod.uid === before.holder.uid &&
        app.memory.genesis === own &&
        !broken.has(pod.uid) &&
        !isLongCut(node),
    )
    if (goesOn !== undefined)
      violate(
        'NotConsented',
        `${keyOf(object)} ${lease.epoch}`,
        `slot ${lease.slot} is handed over while ${goesOn.pod.name} runs`,
      )
  })

  const cutSince = new Map<ModelNode, number>()
  const isLongCut = (node: ModelNode) => time.now() - (cutSince.get(node) ?? time.now()) > 25_000

  /** Checks that a working backup is deleted only if there is one too many. */
  const lookAtDeletion = (pod: Pod, old: Pod | undefined) => {
    const { uid, deletionTimestamp } = pod.metadata
    if (deletionTimestamp === undefined || old?.metadata.deletionTimestamp !== undefined) return
    endsSince.set(uid, time.now())
    const held = server
      .list(leases)
      .map(parseSlotLease)
      .find(lease => lease?.holder.uid === uid)
    if (held !== undefined) goingAsHolder.add(uid)
    const set = server.find(backupPodSets, setRef)
    const type = old?.metadata.labels?.[labels.type]
    broken.add(uid)
    if (set === undefined || type !== 'hotbackup' || cluster.wantedGone.has(uid)) return
    // It was called, answered too late, and was ended in favour of another one: no memory can be restored in it any
    // more.
    if (servingOf(pod).death !== undefined) return
    // It was called to a slot for which the set has no place any more, and it could take no other one.
    if (held?.retainedSince !== undefined) return
    if (time.now() - (letGoAt.get(uid) ?? Number.NEGATIVE_INFINITY) < passMs) return
    // A rolling update deletes backups with an older template one by one.
    if (set.spec.updateStrategy?.type === 'RollingUpdate') return
    // The operator decided by the spec before the last edit.
    if (time.now() - changedAt < passMs) return
    const { hotBackups = 0 } = set.spec
    // The operator cannot know yet of pods whose termination began just now.
    const live = server
      .list(pods)
      .filter(
        ({ metadata }) =>
          metadata.uid !== uid &&
          (metadata.deletionTimestamp === undefined ||
            time.now() - (endsSince.get(metadata.uid) ?? 0) < newsMs),
      )
    const count = (kind: string) =>
      live.filter(
        ({ metadata, status }) =>
          metadata.labels?.[labels.type] === kind &&
          status?.conditions?.some(one => one.type === 'ContainersReady' && one.status === 'True'),
      ).length
    const isWell = pod.status?.conditions?.some(
      ({ type: each, status }) => each === 'ContainersReady' && status === 'True',
    )
    if (isWell && count('hotbackup') < hotBackups)
      violate(
        'TooManyDeleted',
        uid,
        `${pod.metadata.name} is deleted, and ${count('hotbackup')} hot backups are left`,
      )
  }

  const look = () => {
    const now = time.now()
    const elapsed = now - lastLook
    lastLook = now
    for (const node of nodes) {
      if (!isSound(node)) soundSince.delete(node)
      else if (!soundSince.has(node)) soundSince.set(node, now)
    }
    for (const node of nodes) {
      if (!node.link.cut) cutSince.delete(node)
      else if (!cutSince.has(node)) cutSince.set(node, now)
      if (now - (cutSince.get(node) ?? now) >= nodeGraceMs - lookMs)
        for (const uid of node.machine.pods.keys()) goingAsHolder.delete(uid)
      if (node.agent === undefined) continue
      const from = agentsCountFrom.get(node.agent) ?? (node.link.cut ? Number.POSITIVE_INFINITY : now)
      const isBack = from === Number.POSITIVE_INFINITY && !node.link.cut
      agentsCountFrom.set(node.agent, isBack ? now + firstWordMs : from)
    }
    if (!cluster.operators.some(each => each !== undefined) || !cluster.operators.every(isSteady))
      operatorsWorkSince = undefined
    else operatorsWorkSince ??= now
    noteEnds()
    lookAtStops()
    lookForTwo(elapsed)
    lookAtLives()
    lookAtShelves()
    lookAtThaws()
    lookForWrongSlots(elapsed)
    lookAtSlots(elapsed)
    lookForMoves()
    lookForUnsaved()
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
      if (set.spec.checkpoint !== undefined && lease?.holder.uid !== uid)
        faults.push(
          `the Lease of slot ${slot} names ${lease?.holder.name ?? 'nobody'}, and ${name} is its primary`,
        )
      const answer = answering(machines, pod.status?.podIP ?? '', time.now())
      if (answer?.pod.uid !== uid)
        faults.push(`who asks ${name} for slot ${slot} is answered by ${answer?.pod.name ?? 'nobody'}`)
      const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready')?.status
      if (ready !== 'True') faults.push(`${name} of slot ${slot} is not ready`)
    }
    for (const type of ['Ready', 'CheckpointReady']) {
      if (type !== 'Ready' && (hotBackups === 0 || set.spec.checkpoint === undefined)) continue
      const told = set.status?.conditions?.find(each => each.type === type)
      if (told?.status !== 'True')
        faults.push(`the set says ${type}=${told?.status} ${told?.reason}: ${told?.message}`)
    }
    return faults
  }

  return {
    look,
    unserved,
    unsaved() {
      const enoughMs = 2 * intervalOf(server.find(backupPodSets, setRef)) + fetchMs
      return notSaved.flatMap(({ pod, ms }) => (ms > enoughMs ? [pod] : []))
    },
    violations,
    atEnd() {
      look()
      for (const fault of unserved()) violate('NotServed', fault, fault)
    },
  }
}
