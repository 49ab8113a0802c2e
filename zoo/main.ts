/** `npm run zoo`: every specimen, many refreshes, two failovers each, on a playground; prints a table at the end. */
import { parseArgs } from 'node:util'
import { allImageNames, ensureImages } from '../images/build.ts'
import { openCluster, up } from '../playground/cluster.ts'
import { deployOperator } from '../playground/deploy.ts'
import { onInterrupt } from '../playground/interrupts.ts'
import { pidsOf } from '../playground/pids.ts'
import { memoryAllowed } from '../src/api/memory-permission.ts'
import { createApi } from '../src/kube/api.ts'
import { loadConnection } from '../src/kube/connection.ts'
import { namespaces } from '../src/kube/resources.ts'
import { createProgress } from '../src/terminal/progress.ts'
import { costly } from './demanding.ts'
import { largeSpecimens } from './large.ts'
import { type Performance, perform } from './perform.ts'
import { specimens as smallSpecimens } from './specimens.ts'

/** Long-running specimens, which npm test leaves out. */
const longOnes = [...costly, ...largeSpecimens]
const specimens = [...smallSpecimens, ...longOnes]

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    refreshes: { type: 'string', default: '10' },
    mode: { type: 'string' },
    name: { type: 'string', default: 'zoo' },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
})

const usage = `npm run zoo -- [options] [specimen ...]

Each specimen is refreshed, fails over with its memory, and fails over again from the pod that was promoted.

  --refreshes N   before each failover (10)
  --mode MODE     Frozen or Staged; default: the best that the nodes allow
  --name CLUSTER  playground to run on; started when it is not up, and then taken down (zoo)
  --keep          leave a cluster up that was started for this

Specimens: ${specimens.map(({ name }) => name).join(', ')}
Only here and not in npm test: ${longOnes.map(({ name }) => name).join(', ')}`

if (values.help) {
  console.log(usage)
  process.exit()
}
const refreshes = Number(values.refreshes)
const mode = values.mode === 'Frozen' || values.mode === 'Staged' ? values.mode : undefined
const chosen = specimens.filter(({ name }) => positionals.length === 0 || positionals.includes(name))
if (!Number.isSafeInteger(refreshes) || refreshes < 1 || chosen.length === 0 || (values.mode && !mode)) {
  console.error(usage)
  process.exit(2)
}

const signal = onInterrupt('taking everything down')
const progress = createProgress(process.stderr)
const wasUp = (await openCluster(values.name)) !== undefined
const images = await progress.step('images', step =>
  ensureImages(allImageNames, { progress: step.detail, signal }),
)
const cluster = await up({
  name: values.name,
  images: Object.values(images).map(({ path }) => path),
  progress,
  signal,
})
const api = createApi({ connection: await loadConnection({ kubeconfig: cluster.kubeconfigPath }) })
const namespace = `zoo-${Date.now().toString(36)}`
const rows: { specimen: string; result: Performance | Error }[] = []
try {
  await deployOperator(cluster, { progress, signal })
  await api.create(namespaces, { metadata: { name: namespace, labels: memoryAllowed } })
  for (const specimen of chosen) {
    signal.throwIfAborted()
    const result = await progress.step(specimen.name, step =>
      perform({ api, namespace, pidsOf, say: step.detail }, specimen, {
        refreshes,
        ...(mode ? { mode } : {}),
      }).catch((error: unknown) => (error instanceof Error ? error : new Error(String(error)))),
    )
    rows.push({ specimen: specimen.name, result })
  }
} finally {
  await api.delete(namespaces, { name: namespace }, { propagationPolicy: 'Background' })
  await api.close()
  if (!wasUp && !values.keep) await cluster.down()
}

console.log(['specimen', 'refreshes', 'first', 'second', 'state'].map(pad).join(''))
for (const { specimen, result } of rows) {
  const [first, second] = result instanceof Error ? [] : result.failovers
  const of = (takeover: typeof first) =>
    takeover === undefined ? '-' : `${takeover.protection} ${takeover.ms.toFixed(0)} ms`
  const state = result instanceof Error ? `LOST: ${result.message}` : `right (${second?.read})`
  console.log([specimen, String(refreshes), of(first), of(second), state].map(pad).join(''))
}
if (rows.some(({ result }) => result instanceof Error)) process.exitCode = 1

function pad(text: string, column: number): string {
  return column === 4 ? text : text.padEnd(18)
}
