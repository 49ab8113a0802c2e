import type { Bench } from '../bench.ts'
import { inNamespace } from '../namespace.ts'
import type { Baselines } from '../report.ts'
import { ofDeployment } from './deployment.ts'
import { type Mode, ofSet } from './set.ts'

export const failover = benchOf(
  'failover',
  'kill -9 or SIGSTOP of the app of the only primary with a hot backup: what clients see; beside a Deployment',
  100,
  ['Frozen', 'Announced', 'Granted', 'Staged', 'Hung'],
)

/** All modes, with few trials. */
export const failoverBasic = benchOf(
  'failover-basic',
  'kill -9 of the app of the only primary, 1 hot, 1 cold or no backup: what clients see; beside a Deployment',
  8,
  ['Frozen', 'Announced', 'Granted', 'Staged', 'Cold', 'Fresh'],
)

/** The modes in which the successor has to start first. */
export const failoverCold = benchOf(
  'failover-cold',
  'the same without a hot backup: 1 cold backup, and none',
  50,
  ['Cold', 'Fresh'],
)

function benchOf(name: string, title: string, trials: number, modes: readonly Mode[]): Bench {
  return {
    name,
    title,
    modes,
    trials,
    needs: ['operator', 'playground'],
    run: async (context, samples) => {
      const chosen = modes.filter(mode => context.modes?.includes(mode) ?? true)
      await inNamespace(context.api, 'bench-failover', context.signal, async namespace => {
        await ofDeployment(context, namespace, samples)
        for (const mode of chosen) await ofSet(context, namespace, mode, samples)
      })
      return samples.report(name, baselinesOf(chosen))
    },
  }
}

function baselinesOf(modes: readonly Mode[]): Baselines {
  const deployment = {
    'restart in place': { case: 'Deployment, restart in place: service' },
    'Deployment replacement': { case: 'Deployment, pod deleted: service' },
  }
  return Object.fromEntries(
    modes.flatMap(mode => [
      [`${mode.toLowerCase()} pod`, { 'restart in place': { case: 'Deployment, restart in place: pod' } }],
      [`${mode.toLowerCase()} service`, deployment],
    ]),
  )
}
