import { fileURLToPath } from 'node:url'
import { parseAllDocuments, stringify } from 'yaml'
import { exists } from '../build/cache.ts'
import { normaliseReference } from '../images/reference.ts'
import { memoryAllowed } from '../src/api/memory-permission.ts'
import type { Progress } from '../src/terminal/progress.ts'
import type { Cluster } from './cluster.ts'
import { CommandError, run } from './exec.ts'
import { PlaygroundError } from './failure.ts'

const memoryLabel = Object.entries(memoryAllowed).map(pair => pair.join('='))

const DEPLOY = fileURLToPath(new URL('../deploy', import.meta.url))

/** Longest wait for the operator to be Available. */
const AVAILABLE_WITHIN = '120s'

/**
 * Installs the manifests in deploy/, as users do (`kubectl apply -k`), and waits until each Deployment and DaemonSet
 * among them is rolled out. Does nothing in a checkout without deploy/kustomization.yaml.
 *
 * Two things differ from a user's installation. Images here change under the same tag, as the source does, so each pod
 * template carries the digests of its images and a new image causes a rollout. Agents also have room for large memory.
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
    const [manifests, images] = await Promise.all([
      kubectl(['kustomize', directory]),
      cluster.nodeImages(cluster.nodes[0] ?? 'n1'),
    ])
    const digests = new Map(images.map(({ name, digest }) => [name, digest]))
    const { text, workloads } = withImageDigests(manifests, digests)
    step.detail('apply')
    await kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], text)
    // The documentation's examples need this label; on a real cluster the administrator decides on it.
    step.detail('checkpoints are allowed in the namespace default')
    await kubectl(['label', '--overwrite', 'namespace', 'default', ...memoryLabel])
    step.detail('waiting until it is Available')
    for (const { kind, namespace, name } of workloads) {
      try {
        await kubectl([
          ...['rollout', 'status', `${kind.toLowerCase()}/${name}`],
          ...['--namespace', namespace, `--timeout=${AVAILABLE_WITHIN}`],
        ])
      } catch (error) {
        if (!(error instanceof CommandError)) throw error
        const get = `${cluster.kubectl} --kubeconfig ${cluster.kubeconfigPath} --namespace ${namespace}`
        throw new PlaygroundError(`${kind} ${namespace}/${name} did not become Available`, {
          cause: error,
          advice: `${get} describe pods; ${get} logs ${kind.toLowerCase()}/${name}`,
        })
      }
    }
    step.detail('')
  })
}

interface Manifest {
  readonly kind?: string
  readonly metadata?: { readonly name?: string; readonly namespace?: string }
  readonly spec?: {
    readonly template?: PodTemplate
  }
}

interface PodTemplate {
  metadata?: { annotations?: Record<string, string> }
  readonly spec?: {
    readonly containers?: readonly {
      readonly name?: string
      readonly image?: string
      readonly resources?: { readonly limits?: Record<string, string> }
    }[]
  }
}

const workloadKinds = ['Deployment', 'DaemonSet'] as const
type WorkloadKind = (typeof workloadKinds)[number]

/** Returns the manifests with the digests of known images in each pod template, and the workloads among them. */
export function withImageDigests(
  manifests: string,
  digests: ReadonlyMap<string, string>,
): { text: string; workloads: { kind: WorkloadKind; namespace: string; name: string }[] } {
  const workloads: { kind: WorkloadKind; namespace: string; name: string }[] = []
  const documents = parseAllDocuments(manifests).map(document => {
    const manifest = document.toJS() as Manifest | null
    const template = manifest?.spec?.template
    const kind = workloadKinds.find(it => it === manifest?.kind)
    if (manifest === null || kind === undefined || template === undefined) return manifest
    const { name = '', namespace = 'default' } = manifest.metadata ?? {}
    workloads.push({ kind, namespace, name })
    const images = template.spec?.containers?.map(it => digests.get(normaliseReference(it.image ?? ''))) ?? []
    const known = images.filter(digest => digest !== undefined)
    if (known.length === 0) return manifest
    if (kind === 'DaemonSet') giveRoom(template)
    template.metadata ??= {}
    template.metadata.annotations = { ...template.metadata.annotations, [DIGESTS]: known.join(' ') }
    return manifest
  })
  return { text: documents.map(it => stringify(it)).join('---\n'), workloads }
}

/** Memory limit of a playground's agents: half of it holds three generations of 1 GB. */
const AGENT_MEMORY = '8Gi'

/** A limit reserves nothing, so on a small machine only large memory fails. */
function giveRoom(template: PodTemplate): void {
  for (const { name, resources } of template.spec?.containers ?? [])
    if (name === 'agent' && resources?.limits !== undefined) resources.limits['memory'] = AGENT_MEMORY
}

const DIGESTS = 'playground.example.com/image-digests'
