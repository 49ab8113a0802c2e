import type { Manager } from '../kube/manager.ts'
import { type FollowOptions, followTraces } from '../traces/follow.ts'
import { openTraces } from '../traces/open.ts'
import type { OperatorOptions } from './options.ts'

/** Sends the traces of failovers and Migrations while this process leads. Without a collector it adds nothing. */
export async function leadTraces(
  manager: Manager,
  options: OperatorOptions,
  version: string,
  { sets, migrations, pods, leases }: Pick<FollowOptions, 'sets' | 'migrations' | 'pods' | 'leases'>,
): Promise<void> {
  const { election, metrics, clock, log } = manager
  const traces = await openTraces(options, {
    ...{ service: 'understudy-operator', instance: options.identity, version },
    ...{ registry: metrics.registry, clock, log },
  })
  if (traces === undefined) return
  const followed = followTraces({
    ...{ sets, migrations, pods, leases, clock, trace: traces.sink },
    leads: election.isLeader,
  })
  manager.background(traces.run)
  manager.leading(async () => followed.catchUp())
}
