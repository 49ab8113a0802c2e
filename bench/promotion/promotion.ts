import type { Bench } from '../bench.ts'
import { inNamespace } from '../namespace.ts'
import type { Baselines } from '../report.ts'
import { ofDeployment } from './deployment.ts'
import { measureOrders, orders } from './orders.ts'
import { ofSet } from './set.ts'

export const promotion: Bench = {
  name: 'promotion',
  title: 'a primary is deleted: label, endpoints, proxy, client; beside a Deployment; orders of the changes',
  trials: 30,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    await inNamespace(context.api, 'bench-promotion', context.signal, async namespace => {
      for (const primaries of sizes) {
        await ofSet(context, namespace, primaries, samples)
        await ofDeployment(context, namespace, primaries, samples)
      }
      await measureOrders(context, namespace, samples)
    })
    return samples.report('promotion', baselines())
  },
}

const sizes = [1, 2] as const
function baselines(): Baselines {
  const ofSizes = sizes.map(size =>
    [
      [`${size}P deletion accepted to label moved`, 'deletion accepted to new pod Ready'],
      [
        `${size}P deletion accepted to first answer of the new primary`,
        'deletion accepted to first answer of the new pod',
      ],
      [`${size}P outage for a client of the Service`, 'outage'],
      [`${size}P failed requests`, 'failed requests'],
      [`${size}P EndpointSlice changes`, 'EndpointSlice changes'],
    ].map(([ours = '', theirs = '']) => [ours, { Deployment: { case: `${size}P Deployment ${theirs}` } }]),
  )
  const [reference, ...others] = orders
  return Object.fromEntries([
    ...ofSizes.flat(),
    ...others.map(({ title }) => [
      `order: ${title}`,
      { [reference.title]: { case: `order: ${reference.title}` } },
    ]),
  ]) as Baselines
}
