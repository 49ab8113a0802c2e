import { pods } from '../../../src/kube/resources.ts'
import { replicas, type World } from './world.ts'

/** Samples of one moment by their name with labels, the sum over the processes that export them. */
export type Samples = (name: string, labels?: Readonly<Record<string, string>>) => number

/** Scrapes all replicas of the operator. */
export async function scrapeOperator(world: Pick<World, 'api'>): Promise<Samples> {
  const all = await replicas(world)
  return samplesIn(
    await Promise.all(
      all.map(({ metadata }) => scrape(world, metadata.namespace ?? '', `${metadata.name}:8080`)),
    ),
  )
}

/** Scrapes the agent of one node. */
export async function scrapeAgent(world: Pick<World, 'api'>, node: string): Promise<Samples> {
  const { items } = await world.api.list(pods, {
    labelSelector: 'app.kubernetes.io/component=agent',
    fieldSelector: `spec.nodeName=${node}`,
  })
  return samplesIn(
    await Promise.all(
      items.map(({ metadata }) => scrape(world, metadata.namespace ?? '', `${metadata.name}:9445`)),
    ),
  )
}

async function scrape({ api }: Pick<World, 'api'>, namespace: string, pod: string): Promise<string> {
  return String((await api.request('GET', `/api/v1/namespaces/${namespace}/pods/${pod}/proxy/metrics`)).body)
}

const samplesIn =
  (texts: readonly string[]): Samples =>
  (name, labels = {}) =>
    texts
      .flatMap(text => text.split('\n'))
      .filter(line => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
      .filter(line => Object.entries(labels).every(([key, value]) => line.includes(`${key}="${value}"`)))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
