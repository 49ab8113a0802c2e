/** Rounds at random on a real etcd and a real kube-apiserver: as long as they say, and not repeated exactly. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { startControlPlane } from '../../../playground/control-plane.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { systemClock as clock } from '../../../src/kube/clock.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { runRound, type Scenario } from '../model/round.ts'
import { scenario } from '../model/scenarios.ts'
import { onRealServer } from './platform.ts'

/** @returns how many have violated something here that they do not violate in the model. */
export async function realRounds(count: number, seed: number): Promise<number> {
  let failed = 0
  await using server = await startServer()
  for (const [index, each] of fc.sample(scenario, { numRuns: count, seed }).entries()) {
    const model = await runRound(each)
    const real = await onRealServer(server.api, platform => runRound(each, undefined, platform))
    const seconds = (real.virtualMs / 1000).toFixed(0)
    const came = `brought memory back ${real.thaws} times, in the model ${model.thaws}`
    console.log(`${index + 1} of ${count}: ${seconds} s, ${came}`)
    for (const { rule, at, what } of real.violations) console.log(`  ${rule} at ${at} ms: ${what}`)
    if (real.violations.length === 0) continue
    failed += model.violations.length === 0 ? 1 : 0
    console.log(`npm run sim -- real --replay '${JSON.stringify(each)}'`)
  }
  return failed
}

/** @returns how many rules were violated. */
export async function realReplay(
  each: Scenario,
  log: (at: number, what: string) => void,
): Promise<readonly { readonly rule: string; readonly at: number; readonly what: string }[]> {
  await using server = await startServer()
  return (await onRealServer(server.api, platform => runRound(each, log, platform))).violations
}

/** An etcd and a kube-apiserver with our kinds and nothing else: an operator would look after the sets of others, too. */
export async function startServer(): Promise<{ readonly api: Api } & AsyncDisposable> {
  const plane = await startControlPlane()
  const api = createApi({ connection: await loadConnection({ kubeconfig: plane.kubeconfigPath }) })
  const stop = async () => {
    await api.close()
    await plane.stop()
  }
  try {
    const kubectl = (...args: string[]) =>
      promisify(execFile)(plane.kubectl, ['--kubeconfig', plane.kubeconfigPath, ...args])
    await kubectl('apply', '-k', new URL('../../../crds', import.meta.url).pathname)
    for (const end = clock.monotonic() + 20_000; ; await clock.sleep(200))
      try {
        await kubectl('get', 'backuppodsets,nodereports', '--all-namespaces')
        break
      } catch (error) {
        if (clock.monotonic() > end) throw error
      }
  } catch (error) {
    await stop()
    throw error
  }
  return { api, [Symbol.asyncDispose]: stop }
}
