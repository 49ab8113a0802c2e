/**
 * A process that takes part in an election: argv is kubeconfig, namespace, lease, identity, times as JSON. Reports its
 * terms on stdout.
 */
import { createApi } from '../../src/kube/api.ts'
import { systemClock } from '../../src/kube/clock.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { createElector } from '../../src/kube/election.ts'
import { silentLog } from '../../src/kube/log.ts'
import { systemRandom } from '../../src/kube/random.ts'

const [kubeconfig = '', namespace = '', name = '', identity = '', times = '{}'] = process.argv.slice(2)
const api = createApi({ connection: await loadConnection({ kubeconfig }) })
const elector = createElector({
  api,
  namespace,
  name,
  identity,
  clock: systemClock,
  random: systemRandom,
  log: silentLog,
  ...JSON.parse(times),
})
const end = new AbortController()
process.once('SIGTERM', () => end.abort())
const tell = (line: string) => process.stdout.write(`${line}\n`)
tell('started')
await elector.run({
  onStarted: (stop, lost) =>
    new Promise(resolve => {
      tell('leading')
      lost.addEventListener('abort', () => tell(`lost, isLeader ${elector.isLeader()}`))
      stop.addEventListener('abort', () => resolve())
    }),
  signal: end.signal,
})
tell('released')
await api.close()
