/**
 * `node bench/arbitration/main.ts`: how long one arbitration of waiting PodMigrationJobs takes, beside a sort of as many texts, and how long one
 * look for pods that give way. It needs no cluster, because the rules do no I/O.
 */

import { arbitrate } from '../../src/podmigrationjob/decide/arbitrate.ts'
import { gatesOf } from '../../src/podmigrationjob/decide/gate.ts'
import { node, replacement, sized } from '../../src/podmigrationjob/testing/crowds.ts'
import { presentWith, viewWith } from '../../src/podmigrationjob/testing/views.ts'
import {
  argsWith,
  budgetWith,
  podWith,
  runningFor,
  waitingFor,
  worldOf,
} from '../../src/podmigrationjob/testing/worlds.ts'

const trials = 11
const podsOfWorkload = 20

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

const measured = (work: () => unknown): number =>
  median(
    Array.from({ length: trials }, () => {
      const begun = performance.now()
      work()
      return performance.now() - begun
    }),
  )

/** As many pods as jobs, of workloads of 20 pods each, on a node for every 30, in ten namespaces; every fourth pod has a disruption budget. */
function scenario(count: number) {
  const pods = Array.from({ length: count }, (_, index) => {
    const workload = Math.floor(index / podsOfWorkload)
    const namespace = `ns${workload % 10}`
    return podWith(`p${index}`, {
      ...{ namespace, node: `n${index % Math.ceil(count / 30)}`, priority: index % 7 },
      ...{ isReady: index % 50 !== 0, qos: index % 3 === 0 ? 'BE' : 'LS' },
      owner: { type: 'workload', key: `Deployment/${namespace}/w${workload}`, kind: 'Deployment' },
      disruptionBudgets: workload % 4 === 0 ? [`${namespace}/w${workload}`] : [],
    })
  })
  const budgets = pods.flatMap(({ disruptionBudgets }) => disruptionBudgets.map(name => budgetWith(name)))
  const running = pods.filter((_, index) => index % 100 === 1).map(runningFor)
  const busy = new Set(running.map(({ place }) => place.uid))
  const waiting = pods.filter(({ uid }) => !busy.has(uid)).map(pod => waitingFor(pod))
  return { waiting, running, world: worldOf(pods, { budgets }) }
}

/** Defaults, and budgets that never stop it: then all jobs pass all rules. */
const configurations = {
  defaults: argsWith({ maxMigratingPerNode: 2 }),
  unlimited: argsWith({ maxMigratingPerWorkload: '100%', maxUnavailablePerWorkload: '100%' }),
}

console.log(
  '| waiting jobs | budgets | admitted | median ms | sort of as many texts, ms |\n| --- | --- | --- | --- | --- |',
)
for (const count of [100, 1_000, 10_000])
  for (const [name, args] of Object.entries(configurations)) {
    const { waiting, running, world } = scenario(count)
    const { admitted } = arbitrate({ waiting, running }, world, args)
    const ms = measured(() => arbitrate({ waiting, running }, world, args))
    const base = measured(() => waiting.map(job => job.key).sort())
    console.log(
      `| ${waiting.length} | ${name} | ${admitted.length} | ${ms.toFixed(1)} | ${base.toFixed(1)} |`,
    )
  }

/** Full nodes of 20 pods each, of the same namespace: the worst case has room nowhere, so the whole look is for nothing. */
function look(count: number, spare: number) {
  const nodes = [
    ...Array.from({ length: count }, (_, index) =>
      node(`n${index}`, 20, { allocatable: { cpu: 20, pods: 110 } }),
    ),
    ...Array.from({ length: spare }, (_, index) => node(`spare${index}`, 20)),
  ]
  const pods = Array.from({ length: count * 20 }, (_, index) => {
    const key = `Deployment/default/w${Math.floor(index / podsOfWorkload)}`
    return sized(`p${index}`, 1, {
      ...{ node: `n${index % count}`, priority: index % 7 },
      owner: { type: 'workload', key, kind: 'Deployment' },
    })
  })
  const name = 'reservation-job-uid'
  const pod = replacement({ placement: {}, requests: { cpu: 2, pods: 1 } })
  const reservationOptions = { reservationRef: { name }, preemptionOptions: {} }
  const held = presentWith(name, { node: undefined, isGated: true })
  const view = viewWith(
    { mode: 'ReservationFirst', reservationOptions },
    { status: { phase: 'Running' }, reservation: held },
  )
  return { view, world: worldOf([...pods, pod], { nodes }) }
}

console.log(
  '\n| nodes | pods | a node is empty | found | one look, median ms |\n| --- | --- | --- | --- | --- |',
)
for (const count of [100, 1_000, 5_000])
  for (const spare of [0, 1]) {
    const { view, world } = look(count, spare)
    const around = { world, running: [], config: { ok: true, args: argsWith() }, mayLook: true } as const
    const [gate] = gatesOf([view], around).gates.values()
    const ms = measured(() => gatesOf([view], around))
    console.log(`| ${count} | ${count * 20} | ${spare > 0} | ${gate?.type} | ${ms.toFixed(1)} |`)
  }
