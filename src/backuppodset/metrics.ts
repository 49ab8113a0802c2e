import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { BackupPodSetStatus } from '../api/backuppodset.ts'
import { protections, type SlotStatus } from '../api/slot-status.ts'
import { createNamedSets, type NamedSets } from '../slot/report/named-sets.ts'
import { stepsOf } from './pending-status.ts'
import type { Outcome } from './plan.ts'

/** Metrics of sets, in addition to those of the reconcile loop. */
export interface SetMetrics {
  acted(outcomes: readonly Outcome[], monotonicNow: number): void
  woke(result: 'opened' | 'failed', seconds: number): void
  /** `now`: wall clock, ms. */
  counted(set: { namespace: string; name: string }, status: BackupPodSetStatus, now: number): void
  forget(set: { namespace: string; name: string }): void
  /** This process no longer leads: removes the values of individual sets, which the new leader exports. Totals stay. */
  reset(): void
}

const instruments = (registers: Registry[]) => ({
  actions: new Counter({
    name: 'backuppodset_actions_total',
    help: 'Actions on pods by type (create, convert, wake, delete, adopt, release) and result.',
    labelNames: ['type', 'result'],
    registers,
  }),
  failovers: new Histogram({
    name: 'backuppodset_failover_duration_seconds',
    help: 'From the first sight of a lost primary to the accepted write that made its successor the primary.',
    labelNames: ['reason'],
    buckets: [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30],
    registers,
  }),
  wakes: new Histogram({
    name: 'backuppodset_wake_duration_seconds',
    help: 'Time to wake a cold backup: wait for its gate, connection and answer.',
    labelNames: ['result'],
    buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 30],
    registers,
  }),
  pods: new Gauge({
    name: 'backuppodset_pods',
    help: 'Live pods of a set by kind.',
    labelNames: ['namespace', 'name', 'kind'],
    registers,
  }),
  ready: new Gauge({
    name: 'backuppodset_pods_ready',
    help: 'Usable pods of a set by kind: ready primaries and hot backups, gated cold backups.',
    labelNames: ['namespace', 'name', 'kind'],
    registers,
  }),
  phases: new Histogram({
    name: 'bps_failover_duration_seconds',
    help: 'Failovers with memory by step: until the Lease is won, the gate of a cold backup is open, the app answers, label and endpoints are written; and the total.',
    labelNames: ['phase'],
    buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30],
    registers,
  }),
  stateLost: new Counter({
    name: 'bps_state_lost_total',
    help: 'Slots that started empty: restarted in place, or replaced by a pod without their memory.',
    labelNames: ['how'],
    registers,
  }),
  age: new Gauge({
    name: 'bps_generation_age_seconds',
    help: 'Age of the memory that a successor of the slot would get.',
    labelNames: ['namespace', 'name', 'slot'],
    registers,
  }),
  interval: new Gauge({
    name: 'bps_checkpoint_interval_seconds',
    help: 'Time between two checkpoints of the slot; its node adapts it to their duration.',
    labelNames: ['namespace', 'name', 'slot'],
    registers,
  }),
  protectedSlots: new Gauge({
    name: 'bps_slots',
    help: 'Slots of a set by protection of their memory.',
    labelNames: ['namespace', 'name', 'protection'],
    registers,
  }),
})

/** @param named shared with other metrics that name sets. */
export function createSetMetrics(registry: Registry, named: NamedSets = createNamedSets()): SetMetrics {
  const registers = [registry]
  const { actions, failovers, wakes, pods, ready, phases, stateLost, age, interval, protectedSlots } =
    instruments(registers)
  // Initialised to 0: Prometheus sees no increase in a counter that first appears with its first loss.
  for (const how of ['restarted', 'replaced']) stateLost.inc({ how }, 0)
  new Gauge({
    name: 'backuppodset_unnamed_sets',
    help: 'Sets that no metric names: there are too many of them, or too many in their namespace.',
    registers,
    collect() {
      this.set(named.unnamed)
    },
  })
  // Slots with a displayed age, by set, so that stale series get removed.
  const shown = new Map<string, ReadonlySet<string>>()
  const showSlots = (namespace: string, name: string, slots: readonly SlotStatus[], at: number) => {
    const now = new Set<string>()
    for (const { slot, savedAt, intervalSeconds } of slots) {
      const labels = { namespace, name, slot: `${slot}` }
      now.add(labels.slot)
      for (const [gauge, value] of [
        [age, savedAt === undefined ? undefined : Math.max(0, at - Date.parse(savedAt)) / 1000],
        [interval, intervalSeconds],
      ] as const)
        if (value === undefined) gauge.remove(labels)
        else gauge.set(labels, value)
    }
    for (const slot of shown.get(`${namespace}/${name}`) ?? [])
      if (!now.has(slot)) for (const gauge of [age, interval]) gauge.remove({ namespace, name, slot })
    shown.set(`${namespace}/${name}`, now)
  }
  return {
    acted(outcomes, monotonicNow) {
      for (const outcome of outcomes) {
        actions.inc({ type: outcome.action.type, result: outcome.type })
        if (outcome.type === 'setback' && outcome.action.type === 'restore')
          stateLost.inc({ how: 'restarted' })
        if (outcome.type !== 'done' || outcome.action.type === 'wake') continue
        const role = 'role' in outcome.action ? outcome.action.role : undefined
        const endedAt = outcome.phases?.published ?? monotonicNow
        if (role?.replaces && role.replaces.reason !== 'Replaced')
          failovers.observe({ reason: role.replaces.reason }, (endedAt - role.replaces.seenAt) / 1000)
        if (outcome.action.type === 'writeSlot' && outcome.action.stateLost)
          stateLost.inc({ how: 'restarted' })
        if (role?.startsEmpty) stateLost.inc({ how: 'replaced' })
        if (outcome.action.type === 'promote' && role?.replaces) {
          const { seenAt } = role.replaces
          for (const [phase, seconds] of Object.entries(stepsOf(outcome.phases ?? {}, seenAt)))
            phases.observe({ phase }, seconds)
          phases.observe({ phase: 'total' }, (endedAt - seenAt) / 1000)
        }
      }
    },
    woke: (result, seconds) => wakes.observe({ result }, seconds),
    counted({ namespace, name }, status, at) {
      if (!named.admit({ namespace, name })) return
      for (const [kind, count, usable] of [
        ['primary', status.replicas, status.readyReplicas],
        ['hotbackup', status.hotbackups, status.readyHotbackups],
        ['coldbackup', status.coldbackups, status.gatedColdbackups],
      ] as const) {
        pods.set({ namespace, name, kind }, count ?? 0)
        ready.set({ namespace, name, kind }, usable ?? 0)
      }
      const slots = status.slots?.filter(({ protection }) => protection !== undefined) ?? []
      showSlots(namespace, name, slots, at)
      // Without slots, as while the set is suspended, the last numbers would stay, and an alert with them.
      for (const protection of protections)
        if (slots.length === 0) protectedSlots.remove({ namespace, name, protection })
        else
          protectedSlots.set(
            { namespace, name, protection },
            slots.filter(slot => slot.protection === protection).length,
          )
    },
    forget({ namespace, name }) {
      named.forget({ namespace, name })
      for (const kind of ['primary', 'hotbackup', 'coldbackup']) {
        pods.remove({ namespace, name, kind })
        ready.remove({ namespace, name, kind })
      }
      showSlots(namespace, name, [], 0)
      shown.delete(`${namespace}/${name}`)
      for (const protection of protections) protectedSlots.remove({ namespace, name, protection })
    },
    reset() {
      for (const gauge of [pods, ready, age, interval, protectedSlots]) gauge.reset()
      shown.clear()
      named.clear()
    },
  }
}
