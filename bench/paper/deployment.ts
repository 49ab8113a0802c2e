import { systemClock } from '../../src/kube/clock.ts'
import { deployments, pods as podResource } from '../../src/kube/resources.ts'
import type { BenchContext } from '../bench.ts'
import { counterTemplate, deploymentOf } from '../objects.ts'
import { record } from '../observe/recording.ts'
import { allReady, isLeaving } from '../observe/state.ts'
import type { Operation } from './operations.ts'
import { emptied, relistMs } from './set.ts'

export interface DeploymentRig {
  /**
   * Performs the nearest equivalent of the operation. @returns ms from before the request until all replicas are Ready
   */
  perform(operation: Operation): Promise<number>
  clear(): Promise<void>
}

const name = 'plain'
const timeoutMs = 60_000
const pauseMs = 2_000

export async function createDeploymentRig(context: BenchContext, namespace: string): Promise<DeploymentRig> {
  const { api, clock, signal, images } = context
  const pods = await record(api, podResource, {
    namespace,
    labelSelector: `app=${name}`,
    now: clock.now,
    signal,
  })
  const ref = { namespace, name }

  return {
    async perform({ name: operation, action, replicas }) {
      const victim = action === 'delete' ? [...pods.live.values()].find(pod => !isLeaving(pod)) : undefined
      pods.forget()
      clock.anchor()
      const reached = pods.next({
        what: `${operation} of the Deployment`,
        timeoutMs,
        holds: live => {
          const current = victim && live.get(victim.metadata.uid)
          return (current === undefined || isLeaving(current)) && allReady(live.values(), replicas)
        },
      })
      const requested = clock.now()
      if (action === 'create')
        await api.create(deployments, deploymentOf(name, replicas, counterTemplate(images.counter, name)), {
          namespace,
          signal,
        })
      else if (action === 'resize')
        await api.patch(deployments, ref, { type: 'merge', body: { spec: { replicas } } }, { signal })
      else if (victim !== undefined)
        await api.delete(podResource, { namespace, name: victim.metadata.name }, {}, { signal })
      const { at } = await reached
      await systemClock.sleep(pauseMs + Math.random() * relistMs, signal)
      return at - requested
    },

    async clear() {
      await api.delete(deployments, ref, { propagationPolicy: 'Background' }, { signal })
      await emptied(pods, timeoutMs)
    },
  }
}
