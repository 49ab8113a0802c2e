/** `npm run endurance`: endurance runs on a playground. Each stops at the first violation. */
import { inspect, parseArgs } from 'node:util'
import { ensureImages, imageNames } from '../../images/build.ts'
import { openCluster, up } from '../../playground/cluster.ts'
import { deployOperator } from '../../playground/deploy.ts'
import { onInterrupt } from '../../playground/interrupts.ts'
import { memoryAllowed } from '../../src/api/memory-permission.ts'
import { createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { namespaces } from '../../src/kube/resources.ts'
import { createProgress } from '../../src/terminal/progress.ts'
import { agents } from './agents.ts'
import type { Endurance } from './endurance.ts'
import { refreshes } from './refreshes.ts'
import { slots } from './slots.ts'

const runs: readonly Endurance[] = [refreshes, slots, agents]

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    n: { type: 'string' },
    name: { type: 'string', default: 'endurance' },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
})

const usage = `npm run endurance -- [options] [name ...]

${runs.map(({ name, title, n }) => `  ${name.padEnd(10)} ${title} (${n} times)`).join('\n')}

  --n N           how often, instead
  --name CLUSTER  playground to run on; started when it is not up, and then taken down (endurance)
  --keep          leave a cluster up that was started for this`

if (values.help) {
  console.log(usage)
  process.exit()
}
const n = values.n === undefined ? undefined : Number(values.n)
const chosen = runs.filter(({ name }) => positionals.length === 0 || positionals.includes(name))
if (
  (n !== undefined && !(Number.isSafeInteger(n) && n > 0)) ||
  chosen.length < new Set(positionals).size ||
  chosen.length === 0
) {
  console.error(usage)
  process.exit(2)
}

const signal = onInterrupt('taking everything down')
const progress = createProgress(process.stderr)
const wasUp = (await openCluster(values.name)) !== undefined
const images = await progress.step('images', step =>
  ensureImages(imageNames, { progress: step.detail, signal }),
)
const cluster = await up({
  name: values.name,
  // One for each primary of `slots` and one for its understudy, which cannot cover primaries of its own node.
  nodes: 4,
  images: Object.values(images).map(({ path }) => path),
  progress,
  signal,
})
const api = createApi({ connection: await loadConnection({ kubeconfig: cluster.kubeconfigPath }) })
try {
  await deployOperator(cluster, { progress, signal })
  for (const run of chosen) {
    const namespace = `endurance-${run.name}-${Date.now().toString(36)}`
    await api.create(namespaces, { metadata: { name: namespace, labels: memoryAllowed } })
    try {
      const seen = await progress.step(run.title, step =>
        run.run({ api, cluster, namespace, n: n ?? run.n, signal, say: step.detail }),
      )
      console.log(`${run.name}: held\n${seen.map(line => `  ${line}\n`).join('')}`)
    } catch (error) {
      console.log(`${run.name}: DID NOT HOLD: ${inspect(error)}\n`)
      process.exitCode = 1
      signal.throwIfAborted()
    } finally {
      await api.delete(namespaces, { name: namespace }, { propagationPolicy: 'Background' })
    }
  }
} finally {
  await api.close()
  if (!wasUp && !values.keep) await cluster.down()
}
