/** Random rounds on a real etcd and a real kube-apiserver: they take their full time and do not repeat exactly. */
import fc from 'fast-check'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { startPlane } from '../../apiserver/lib/start-plane.ts'
import { runRound, type Scenario } from '../model/round.ts'
import { scenario } from '../model/scenarios.ts'
import { onRealServer } from './platform.ts'

/** @returns the number of scenarios that violate something here but not in the model */
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

/** @returns the violations */
export async function realReplay(
  each: Scenario,
  log: (at: number, what: string) => void,
): Promise<readonly { readonly rule: string; readonly at: number; readonly what: string }[]> {
  await using server = await startServer()
  return (await onRealServer(server.api, platform => runRound(each, log, platform))).violations
}

/** Starts a server for the simulation alone: an operator would also manage the sets of other tests. */
export async function startServer(): Promise<{ readonly api: Api } & AsyncDisposable> {
  const plane = await startPlane()
  const api = createApi({ connection: await loadConnection({ kubeconfig: plane.kubeconfigPath }) })
  const stop = async () => {
    await api.close()
    await plane.stop()
  }
  return { api, [Symbol.asyncDispose]: stop }
}
