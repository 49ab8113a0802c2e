/**
 * The invariants. The round checks them repeatedly while it runs, and once more at its end. Each rule has a file in
 * `invariants/`.
 */
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { parseNumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { createMemo } from '../../../src/kube/memo.ts'
import { resourceName } from '../../../src/kube/resources.ts'
import type { Cluster } from './cluster.ts'
import { boundsOf } from './invariants/bounds.ts'
import { endsSoon } from './invariants/ends-soon.ts'
import { createFates } from './invariants/fates.ts'
import type { Ground, Violate, Violation } from './invariants/ground.ts'
import { createHealth } from './invariants/health.ts'
import { impostorAnswers } from './invariants/impostor-answers.ts'
import { impostorSaved } from './invariants/impostor-saved.ts'
import { lateTakeover } from './invariants/late-takeover.ts'
import { longOutage } from './invariants/long-outage.ts'
import { memoryThrownAway } from './invariants/memory-thrown-away.ts'
import { moves } from './invariants/moves.ts'
import { needlessEnd, needlessTakeover } from './invariants/needless.ts'
import { notCalled } from './invariants/not-called.ts'
import { notConsented } from './invariants/not-consented.ts'
import { notSaved } from './invariants/not-saved.ts'
import { differences } from './invariants/not-served.ts'
import { oldMemory } from './invariants/old-memory.ts'
import { otherSetsMemory } from './invariants/other-sets-memory.ts'
import { servedSlots } from './invariants/served-slots.ts'
import { sleepLost } from './invariants/sleep-lost.ts'
import { slotMoved } from './invariants/slot-moved.ts'
import { staysStopped } from './invariants/stays-stopped.ts'
import { strandedStays } from './invariants/stranded-stays.ts'
import { tooManyDeleted } from './invariants/too-many-deleted.ts'
import { twoRun } from './invariants/two-run.ts'
import { twoServe } from './invariants/two-serve.ts'
import { wrongSlot } from './invariants/wrong-slot.ts'

export interface Observer {
  look(): void
  /** Returns the differences from the set's spec; empty if every slot is served. */
  unserved(): readonly string[]
  /** Returns the Migrations that have not ended. */
  unmoved(): readonly string[]
  /** Returns primaries that should have been saved meanwhile; empty if every primary is saved. */
  unsaved(): readonly string[]
  /** The check after all faults have ended and everything had time to recover. */
  atEnd(): void
  readonly violations: readonly Violation[]
  /** Returns how many Migrations have ended in which way. */
  moves(): Readonly<Record<string, number>>
}

export function createObserver(cluster: Cluster, intervalMs: number, slack: number): Observer {
  const { time } = cluster
  const violations: Violation[] = []
  const told = new Set<string>()
  const violate: Violate = (rule, key, what) => {
    if (told.has(`${rule} ${key}`)) return
    told.add(`${rule} ${key}`)
    violations.push({ rule, at: Math.round(time.now()), what })
  }
  const ground = groundOf(cluster, intervalMs, slack, violate)
  const { look, unsaved, migrations, atEnd } = rulesOf(ground, slack)
  let lastLook = 0
  const lookNow = () => {
    const elapsed = time.now() - lastLook
    lastLook = time.now()
    ground.health.look()
    ground.fates.look()
    look(elapsed)
    for (const failure of cluster.failures)
      violate(
        'Crash',
        String(failure),
        failure instanceof Error ? (failure.stack ?? failure.message) : String(failure),
      )
  }
  return {
    look: lookNow,
    unserved: () => differences(ground),
    unsaved,
    unmoved: migrations.unmoved,
    moves: migrations.ends,
    violations,
    atEnd() {
      lookNow()
      atEnd()
      for (const fault of differences(ground)) violate('NotServed', fault, fault)
    },
  }
}

function groundOf(cluster: Cluster, intervalMs: number, slack: number, violate: Violate): Ground {
  const bounds = boundsOf(slack)
  const leaseOf = createMemo(parseNumberedSlotLease)
  const health = createHealth(cluster, bounds)
  const fates = createFates(cluster, bounds, health, leaseOf)
  let editedAt = 0
  cluster.server.subscribe((resource, { object, old }) => {
    const isSet = resource === resourceName(backupPodSets)
    if (isSet && old?.metadata.generation !== object.metadata.generation) editedAt = cluster.time.now()
  })
  return { cluster, bounds, intervalMs, violate, leaseOf, health, fates, editedAt: () => editedAt }
}

/** Combines the rules that look at the cluster from time to time, or at each event. */
function rulesOf(ground: Ground, slack: number) {
  const { thaws } = ground.cluster
  const lookAtStops = needlessEnd(ground)
  const lookForTwo = twoRun(ground)
  const stopped = staysStopped(ground)
  const lookForLateTakeovers = lateTakeover(ground)
  const lookAtLives = memoryThrownAway(ground)
  const shelves = impostorSaved(ground)
  const lookForTwoServing = twoServe(ground, shelves.saved)
  const memories = oldMemory(ground)
  const calls = notCalled(ground)
  const lookAtThaw = [endsSoon(ground), calls.atThaw, needlessTakeover(ground), memories.lookAtThaw]
  const lookForWrongSlots = wrongSlot(ground)
  const lookForOtherSets = otherSetsMemory(ground)
  const slots = servedSlots(ground)
  const lookForImpostors = impostorAnswers(ground, shelves.saved)
  const lookForOutages = longOutage(ground)
  const lookForMoves = slotMoved(ground)
  const lookForStranded = strandedStays(ground)
  const saves = notSaved(ground, shelves.saved, slack)
  const migrations = moves(ground)
  notConsented(ground, shelves.saved)
  sleepLost(ground, shelves.saved)
  tooManyDeleted(ground)
  let thawsSeen = 0
  return {
    look(elapsed: number) {
      lookAtStops()
      memories.look()
      lookForTwo(elapsed)
      lookForTwoServing()
      stopped.look(elapsed)
      lookAtLives()
      shelves.look()
      for (const thaw of thaws.slice(thawsSeen)) for (const lookAt of lookAtThaw) lookAt(thaw)
      thawsSeen = thaws.length
      calls.look()
      lookForWrongSlots(elapsed)
      lookForOtherSets()
      const served = slots()
      lookForImpostors(served, elapsed)
      lookForOutages(served, elapsed)
      lookForLateTakeovers(served, elapsed)
      lookForMoves()
      lookForStranded(elapsed)
      saves.look()
      migrations.look()
    },
    unsaved: saves.unsaved,
    migrations,
    atEnd() {
      stopped.atEnd()
      migrations.atEnd()
    },
  }
}
