import type { Bench } from '../bench.ts'
import { inNamespace } from '../namespace.ts'
import type { Baselines } from '../report.ts'
import { ofDeployment } from './deployment.ts'
import { modes, ofSet } from './set.ts'

export const failover: Bench = {
  name: 'failover-basic',
  title:
    'kill -9 of the app of the only primary, 1 hot, 1 cold or no backup: what clients see; beside a Deployment',
  trials: 20,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    await inNamespace(context.api, 'bench-failover', context.signal, async namespace => {
      await ofDeployment(context, namespace, samples)
      for (const mode of modes) await ofSet(context, namespace, mode, samples)
    })
    return samples.report('failover-basic', baselines())
  },
}

/** Only the modes that take seconds, with enough trials to trust that every memory is restored. */
export const failoverCold: Bench = {
  name: 'failover-cold',
  title: 'the same without a hot backup: 1 cold backup, and none; fails at the first wrong value',
  trials: 50,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    await inNamespace(context.api, 'bench-failover', context.signal, async namespace => {
      for (const mode of ['Cold', 'Fresh'] as const) await ofSet(context, namespace, mode, samples)
    })
    return samples.report('failover-cold', {})
  },
}

function baselines(): Baselines {
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
