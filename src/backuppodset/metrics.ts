import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { BackupPodSetStatus } from '../api/backuppodset.ts'
import { podKinds } from '../api/labels.ts'
import { metricName, type SetLabels, setLabels, setLabelsOf, unnamedSet } from '../api/metrics.ts'
import { protections, type SlotStatus } from '../api/slot-status.ts'
import { lossReasons } from '../slot/decide/snapshot.ts'
import { createNamedSets, type NamedSets, type SetName } from '../slot/report/named-sets.ts'
import { stepsOf } from './pending-status.ts'
import type { Outcome } from './plan.ts'

/** Metrics of sets, in addition to those of the reconcile loop. */
export interface SetMetrics {
  /** @param set undefined: it no longer exists, or this process no longer leads, so no metric may begin to name it. */
  acted(set: SetName | undefined, outcomes: readonly Outcome[], monotonicNow: number): void
  woke(result: 'opened' | 'failed', seconds: number): void
  /** `now`: wall clock, ms. */
  counted(set: SetName, status: BackupPodSetStatus, now: number): void
  forget(set: SetName): void
  /** This process no longer leads: removes the values of individual sets, which the new leader exports. Totals stay. */
  reset(): void
}

const losses = ['restarted', 'replaced'] as const

const instruments = (registers: Registry[]) => ({
  actions: new Counter({
    name: metricName('actions_total'),
    help: 'Actions on pods by type (create, convert, wake, delete, adopt, release) and result.',
    labelNames: ['type', 'result'],
    registers,
  }),
  failovers: new Histogram({
    name: metricName('failover_duration_seconds'),
    help: 'From the first sight of a lost primary to the accepted write that made its successor the primary, or recorded that it had taken the slot by a grant.',
    labelNames: [...setLabels, 'reason'],
    buckets: [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30],
    registers,
  }),
  wakes: new Histogram({
    name: metricName('wake_duration_seconds'),
    help: 'Time to wake a cold backup: wait for its gate, connection and answer.',
    labelNames: ['result'],
    buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 30],
    registers,
  }),
  pods: new Gauge({
    name: metricName('pods'),
    help: 'Live pods of a set by kind.',
    labelNames: [...setLabels, 'kind'],
    registers,
  }),
  ready: new Gauge({
    name: metricName('pods_ready'),
    help: 'Usable pods of a set by kind: ready primaries and hot backups, gated cold backups.',
    labelNames: [...setLabels, 'kind'],
    registers,
  }),
  phases: new Histogram({
    name: metricName('failover_phase_seconds'),
    help: 'Failovers with memory by step: until the Lease is won, the gate of a cold backup is open, the app answers, label and endpoints are written; and the total.',
    labelNames: ['phase'],
    buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30],
    registers,
  }),
  stateLost: new Counter({
    name: metricName('state_lost_total'),
    help: 'Slots that started empty: restarted in place, or replaced by a pod without their memory.',
    labelNames: [...setLabels, 'how'],
    registers,
  }),
  age: new Gauge({
    name: metricName('generation_age_seconds'),
    help: 'Age of the memory that a successor of the slot would get.',
    labelNames: [...setLabels, 'slot'],
    registers,
  }),
  interval: new Gauge({
    name: metricName('checkpoint_interval_seconds'),
    help: 'Time between two checkpoints of the slot; its node adapts it to their duration.',
    labelNames: [...setLabels, 'slot'],
    registers,
  }),
  protectedSlots: new Gauge({
    name: metricName('slots'),
    help: 'Slots of a set by protection of their memory.',
    labelNames: [...setLabels, 'protection'],
    registers,
  }),
  grantedSlots: new Gauge({
    name: metricName('slots_granted'),
    help: 'Slots of a set whose heir may take them without the operator (failover.grant: Heir).',
    labelNames: setLabels,
    registers,
  }),
})

/** @param named shared with other metrics that name sets. */
export function createSetMetrics(registry: Registry, named: NamedSets = createNamedSets()): SetMetrics {
  const registers = [registry]
  const {
    actions,
    failovers,
    wakes,
    pods,
    ready,
    phases,
    stateLost,
    age,
    interval,
    protectedSlots,
    grantedSlots,
  } = instruments(registers)
  // Initialised to 0: Prometheus sees no increase in a counter that first appears with its first loss.
  const beginAtZero = (labels: SetLabels) => {
    for (const how of losses) stateLost.inc({ ...labels, how }, 0)
  }
  beginAtZero(unnamedSet)
  const admit = (set: SetName): SetLabels | undefined => {
    if (!named.admit(set)) return undefined
    beginAtZero(setLabelsOf(set))
    return setLabelsOf(set)
  }
  new Gauge({
    name: metricName('unnamed_sets'),
    help: 'Sets that no metric names: there are too many of them, or too many in their namespace.',
    registers,
    collect() {
      this.set(named.unnamed)
    },
  })
  // Slots with a displayed age, by set, so that stale series get removed.
  const shown = new Map<string, ReadonlySet<string>>()
  const showSlots = (set: SetName, slots: readonly SlotStatus[], at: number) => {
    const key = `${set.namespace}/${set.name}`
    const now = new Set<string>()
    for (const { slot, savedAt, intervalSeconds } of slots) {
      const labels = { ...setLabelsOf(set), slot: `${slot}` }
      now.add(labels.slot)
      for (const [gauge, value] of [
        [age, savedAt === undefined ? undefined : Math.max(0, at - Date.parse(savedAt)) / 1000],
        [interval, intervalSeconds],
      ] as const)
        if (value === undefined) gauge.remove(labels)
        else gauge.set(labels, value)
    }
    for (const slot of shown.get(key) ?? [])
      if (!now.has(slot)) for (const gauge of [age, interval]) gauge.remove({ ...setLabelsOf(set), slot })
    shown.set(key, now)
  }
  return {
    acted(set, outcomes, monotonicNow) {
      const labels = (outcomes.length > 0 && set && admit(set)) || unnamedSet
      for (const outcome of outcomes) {
        actions.inc({ type: outcome.action.type, result: outcome.type })
        if (outcome.type === 'setback' && outcome.action.type === 'restore')
          stateLost.inc({ ...labels, how: 'restarted' })
        if (outcome.type !== 'done' || outcome.action.type === 'wake') continue
        const role = 'role' in outcome.action ? outcome.action.role : undefined
        const endedAt = outcome.phases?.published ?? monotonicNow
        if (role?.replaces && role.replaces.reason !== 'Replaced')
          failovers.observe(
            { ...labels, reason: role.replaces.reason },
            (endedAt - role.replaces.seenAt) / 1000,
          )
        if (outcome.action.type === 'writeSlot' && outcome.action.stateLost)
          stateLost.inc({ ...labels, how: 'restarted' })
        if (role?.startsEmpty) stateLost.inc({ ...labels, how: 'replaced' })
        if (outcome.action.type === 'promote' && role?.replaces) {
          const { seenAt } = role.replaces
          for (const [phase, seconds] of Object.entries(stepsOf(outcome.phases ?? {}, seenAt)))
            phases.observe({ phase }, seconds)
          phases.observe({ phase: 'total' }, (endedAt - seenAt) / 1000)
        }
      }
    },
    woke: (result, seconds) => wakes.observe({ result }, seconds),
    counted(set, status, at) {
      const labels = admit(set)
      if (labels === undefined) return
      for (const [kind, count, usable] of [
        ['primary', status.replicas, status.readyReplicas],
        ['hotbackup', status.hotbackups, status.readyHotbackups],
        ['coldbackup', status.coldbackups, status.gatedColdbackups],
      ] as const) {
        pods.set({ ...labels, kind }, count ?? 0)
        ready.set({ ...labels, kind }, usable ?? 0)
      }
      const slots = status.slots?.filter(({ protection }) => protection !== undefined) ?? []
      showSlots(set, slots, at)
      // Without slots, as while the set is suspended, the last numbers would stay, and an alert with them.
      for (const protection of protections)
        if (slots.length === 0) protectedSlots.remove({ ...labels, protection })
        else
          protectedSlots.set(
            { ...labels, protection },
            slots.filter(slot => slot.protection === protection).length,
          )
      if (slots.length === 0) grantedSlots.remove(labels)
      else grantedSlots.set(labels, slots.filter(({ grantedTo }) => grantedTo !== undefined).length)
    },
    forget(set) {
      named.forget(set)
      const labels = setLabelsOf(set)
      for (const kind of podKinds) {
        pods.remove({ ...labels, kind })
        ready.remove({ ...labels, kind })
      }
      showSlots(set, [], 0)
      shown.delete(`${set.namespace}/${set.name}`)
      for (const protection of protections) protectedSlots.remove({ ...labels, protection })
      grantedSlots.remove(labels)
      for (const how of losses) stateLost.remove({ ...labels, how })
      for (const reason of lossReasons) failovers.remove({ ...labels, reason })
    },
    reset() {
      for (const metric of [pods, ready, age, interval, protectedSlots, grantedSlots, stateLost, failovers])
        metric.reset()
      beginAtZero(unnamedSet)
      shown.clear()
      named.clear()
    },
  }
}
