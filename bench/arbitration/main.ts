/**
 * `node bench/arbitration/main.ts`: how long one arbitration of waiting PodMigrationJobs takes, beside a sort of as many texts. It needs no
 * cluster, because the rules do no I/O.
 */

import { arbitrate } from '../../src/podmigrationjob/decide/arbitrate.ts'
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
