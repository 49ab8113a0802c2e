import { systemClock } from '../../src/kube/clock.ts'
import { type Pod, pods as podResource } from '../../src/kube/resources.ts'
import type { BenchContext } from '../bench.ts'
import { record } from '../observe/recording.ts'
import { isInPlace, kindOf } from '../observe/state.ts'
import type { Controller } from './controller.ts'
import type { Operation } from './operations.ts'
import { emptied, relistMs } from './set.ts'

export interface ByHandRig {
  /**
   * Creates pods like those that a set had after the operation, all at once and without a controller. The result is the
   * cluster's own time, the lower bound for any controller. The pods are deleted before this resolves.
   *
   * @returns ms from before the first request until all are in place
   */
  perform(operation: Operation, models: readonly Pod[]): Promise<number>
}

const app = 'by-hand'
const timeoutMs = 60_000
const pauseMs = 2_000

export async function createByHandRig(
  { api, clock, signal }: BenchContext,
  { gate }: Pick<Controller, 'gate'>,
  namespace: string,
): Promise<ByHandRig> {
  const options = { namespace, labelSelector: `app=${app}`, now: clock.now, signal }
  const pods = await record(api, podResource, options)

  return {
    async perform({ name, to }, models) {
      const bodies = models.map(copyOf)
      pods.forget()
      clock.anchor()
      const reached = pods.next({
        what: `${name} by hand`,
        timeoutMs,
        holds: live => isInPlace(live.values(), to, gate),
      })
      const requested = clock.now()
      const made = await Promise.all(bodies.map(body => api.create(podResource, body, { namespace, signal })))
      const { at } = await reached
      await systemClock.sleep(pauseMs, signal)
      await Promise.all(
        made.map(({ metadata }) =>
          api.delete(podResource, { namespace, name: metadata.name }, {}, { signal }),
        ),
      )
      await emptied(pods, timeoutMs)
      await systemClock.sleep(pauseMs + Math.random() * relistMs, signal)
      return at - requested
    },
  }
}

/** Without the labels by which a controller would adopt it. */
function copyOf(model: Pod): object {
  const { nodeName: _, ...spec } = model.spec ?? {}
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { generateName: `${app}-`, labels: { app, type: kindOf(model) } },
    spec,
  }
}
