/** Faults of the control plane. Its processes start again by themselves, a second after they have ended. */
import { apiStartMs } from '../bounds.ts'
import { type Nemesis, plain } from './nemesis.ts'
import { processesOn, signalAll } from './processes.ts'

const ending = (name: string, proves: string, programs: readonly string[]): Nemesis => ({
  name,
  proves,
  family: 'control-plane',
  aim: async ({ cluster }, random) => {
    const signal = random.of(['SIGKILL', 'SIGTERM'] as const)
    return {
      ...plain,
      target: `${programs.join(' and ')}, ${signal}`,
      // No node can report a copy meanwhile.
      stopsSaving: true,
      outageMs: apiStartMs,
      strike: async () => {
        for (const program of programs) signalAll(await processesOn(cluster, 'cp', program), signal)
      },
    }
  },
})

export const restartApi = ending(
  'api-restart',
  'a restart of the API server changes nothing, and a death meanwhile gets its successor afterwards',
  ['kube-apiserver'],
)

export const restartEtcd = ending('etcd-restart', 'the same for etcd', ['etcd'])

export const restartBoth = ending('control-plane-restart', 'the same for both at once', [
  'etcd',
  'kube-apiserver',
])
