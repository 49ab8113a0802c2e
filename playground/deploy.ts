import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import { exists } from '../images/cache.ts'
import type { Cluster } from './cluster.ts'
import { CommandError, run } from './exec.ts'
import { PlaygroundError } from './failure.ts'
import type { Progress } from './progress.ts'

const DEPLOY = fileURLToPath(new URL('../deploy', import.meta.url))

/** Longest wait for the operator to be Available. */
const AVAILABLE_WITHIN = '120s'

/**
 * Installs what deploy/ describes, as its users do (`kubectl apply -k`), and waits until each Deployment of it is
 * Available. Does nothing in a checkout that has no deploy/kustomization.yaml.
 */
export async function deployOperator(
  cluster: Cluster,
  options: {
    readonly progress: Progress
    readonly signal?: AbortSignal | undefined
    readonly directory?: string
  },
): Promise<void> {
  const directory = options.directory ?? DEPLOY
  if (!(await exists(`${directory}/kustomization.yaml`))) return
  const { signal } = options
  const kubectl = (args: readonly string[], input?: string): Promise<string> =>
    run([cluster.kubectl, '--kubeconfig', cluster.kubeconfigPath, ...args], {
      signal,
      ...(input !== undefined && { input }),
    })
  await options.progress.step('operator', async step => {
    const manifests = await kubectl(['kustomize', directory])
    step.detail('apply')
    await kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], manifests)
    step.detail('waiting until it is Available')
    for (const { namespace, name } of deploymentsIn(manifests)) {
      const deployment = ['--namespace', namespace, `deployment/${name}`]
      try {
        await kubectl(['wait', '--for=condition=Available', `--timeout=${AVAILABLE_WITHIN}`, ...deployment])
      } catch (error) {
        if (!(error instanceof CommandError)) throw error
        throw new PlaygroundError(`the operator does not become Available`, {
          cause: error,
          advice: `kubectl --kubeconfig ${cluster.kubeconfigPath} -n ${namespace} describe pods; kubectl logs deployment/${name}`,
        })
      }
    }
    step.detail('')
  })
}

function deploymentsIn(manifests: string): { namespace: string; name: string }[] {
  return parseAllDocuments(manifests).flatMap(document => {
    const { kind, metadata } = (document.toJS() ?? {}) as { kind?: string; metadata?: Record<string, string> }
    if (kind !== 'Deployment') return []
    return [{ namespace: metadata?.['namespace'] ?? 'default', name: metadata?.['name'] ?? '' }]
  })
}
