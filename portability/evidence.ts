/** Facts that explain a failure, kept before the cluster and its logs are gone. */
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { runToEnd } from '../playground/exec.ts'
import { clusterPaths } from '../playground/paths.ts'
import { agentsNamespace } from '../zoo/slots.ts'
import type { GuestNode } from './node.ts'
import type { Stage } from './stage.ts'

/** Writes objects and logs into out/portability. A part that cannot be had says why in its file. */
export async function keepEvidence(
  { cluster, namespace }: Pick<Stage, 'cluster' | 'namespace'>,
  { name, onNode }: Pick<GuestNode, 'name' | 'onNode'>,
  failed: string,
): Promise<void> {
  const directory = new URL(`../out/portability/${name}-${failed}/`, import.meta.url)
  await mkdir(directory, { recursive: true })
  const kubectl = (...args: readonly string[]): readonly string[] => [
    ...[cluster.kubectl, '--kubeconfig', cluster.kubeconfigPath],
    ...args,
  ]
  const logs = (of: string, component: string): readonly string[] =>
    kubectl(
      '--namespace',
      of,
      'logs',
      '--prefix',
      '--tail=-1',
      '--selector',
      `app.kubernetes.io/component=${component}`,
    )
  const parts: Readonly<Record<string, readonly string[]>> = {
    'pods.txt': kubectl('get', 'pods', '--all-namespaces', '--output', 'wide'),
    'described.txt': kubectl('--namespace', namespace, 'describe', 'pods'),
    'objects.yaml': kubectl('--namespace', namespace, 'get', 'backuppodsets,leases,pods', '--output', 'yaml'),
    'report.yaml': kubectl('get', 'nodereport', name, '--output', 'yaml'),
    'operator.log': logs('understudy-system', 'operator'),
    'agent.log': logs(agentsNamespace, 'agent'),
    'agent-described.txt': kubectl('--namespace', agentsNamespace, 'describe', 'pods'),
    'journal.log': onNode(['journalctl', '--boot', '--no-pager', '--output', 'short-monotonic']),
    'sentinel.log': onNode(['cat', '/run/understudy/sentinel.log']),
  }
  for (const [file, argv] of Object.entries(parts)) {
    const { stdout, stderr } = await runToEnd(argv)
    await writeFile(new URL(file, directory), stdout + stderr)
  }
  // The last words of a kernel that has died.
  await copyFile(
    `${clusterPaths(cluster.name).machine(name).logs}/console.log`,
    new URL('console.log', directory),
  )
}
