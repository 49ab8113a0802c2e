import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Api } from '../src/kube/api.ts'
import { isKubeError } from '../src/kube/errors.ts'
import { nodes as nodeResource } from '../src/kube/resources.ts'
import { applyManifests } from './apply.ts'
import { ensureArtifacts } from './artifacts/artifacts.ts'
import { connect } from './bring-up.ts'
import { cgroupsOf, detectCgroups } from './cgroups.ts'
import { PlaygroundError } from './failure.ts'
import { writeKubeconfig } from './kubeconfig.ts'
import type { ClusterPaths } from './paths.ts'
import { openAuthority } from './pki.ts'
import type { ClusterPlan } from './plan.ts'
import { identify, signalProcess, waitGone } from './process.ts'
import { renderStages } from './render/kwok.ts'
import { quote } from './render/shell.ts'

/**
 * Fake nodes. Pods are scheduled there if they tolerate the taint `kwok.x-k8s.io/node` and select the label `type:
 * kwok`.
 */
export interface Kwok {
  readonly nodes: readonly string[]
  /** Removes the fake nodes. Delete their pods first: nothing else ends them. */
  stop(): Promise<void>
}

export const KWOK_TAINT = { key: 'kwok.x-k8s.io/node', value: 'fake', effect: 'NoSchedule' } as const
export const KWOK_LABEL = { type: 'kwok' } as const
const ANNOTATION = { 'kwok.x-k8s.io/node': 'fake' }

export async function startKwok(inputs: {
  readonly plan: ClusterPlan
  readonly paths: ClusterPaths
  readonly nodes: number
  readonly signal?: AbortSignal
}): Promise<Kwok> {
  const { plan, paths, signal } = inputs
  const { kwok } = await ensureArtifacts(['kwok'], { signal })
  const names = Array.from({ length: inputs.nodes }, (_, i) => `fake-${i + 1}`)
  const dir = paths.machine('cp').root
  const stagesPath = join(dir, 'kwok-stages.yaml')
  await writeFile(stagesPath, renderStages())
  const authority = await openAuthority(paths.pki, signal)
  const kubeconfig = await writeKubeconfig({
    path: join(dir, 'kwok.kubeconfig'),
    name: plan.name,
    server: `https://${plan.controlPlane.address}:${plan.apiPort}`,
    user: 'kwok',
    caPath: authority.caPath,
    certificate: await authority.issue({
      name: 'kwok',
      commonName: 'kwok',
      organizations: ['system:masters'],
      usage: 'client',
    }),
  })
  const logPath = join(paths.machine('cp').logs, 'kwok.log')
  const pid = await launch(plan, paths, 'kwok', [
    join(kwok, 'kwok'),
    `--kubeconfig=${kubeconfig}`,
    `--config=${stagesPath}`,
    `--manage-nodes-with-annotation-selector=${Object.entries(ANNOTATION).map(([key, value]) => `${key}=${value}`)}`,
    '--node-lease-duration-seconds=40',
    `--cidr=${plan.fakePodCidr}`,
    `--node-ip=${plan.controlPlane.address}`,
  ])
  const gates = await launch(plan, paths, 'kwok-gates', [
    process.execPath,
    fileURLToPath(new URL('kwok-gates.ts', import.meta.url)),
    plan.controlPlane.address,
  ])
  const api = await connect(paths)
  const stop = async (): Promise<void> => {
    for (const process of [pid, gates]) {
      await signalProcess(process, 'SIGKILL')
      await waitGone(process, 5_000)
    }
    await removeNodes(paths, names)
  }
  try {
    const nodes = names.map(name => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, annotations: ANNOTATION, labels: { ...KWOK_LABEL, 'kubernetes.io/hostname': name } },
      spec: { taints: [KWOK_TAINT] },
    }))
    await applyManifests(api, nodes, signal)
    const deadline = AbortSignal.timeout(60_000)
    const limited = signal === undefined ? deadline : AbortSignal.any([signal, deadline])
    await untilReady(api, names.length, limited, async () => {
      if ((await identify(pid.pid)) === undefined) throw new PlaygroundError('KWOK has ended', { logPath })
      if ((await identify(gates.pid)) === undefined)
        throw new PlaygroundError('the program of the fake gates has ended', {
          logPath: join(paths.machine('cp').logs, 'kwok-gates.log'),
        })
    })
  } catch (error) {
    await stop()
    if (error instanceof PlaygroundError || signal?.aborted === true) throw error
    throw new PlaygroundError('the fake nodes did not become ready', { logPath, cause: error })
  } finally {
    await api.close()
  }
  return { nodes: names, stop }
}

/** @param assertRunning called after each look. @throws its error, or the signal's reason */
async function untilReady(
  api: Api,
  count: number,
  signal: AbortSignal,
  assertRunning: () => Promise<void>,
): Promise<void> {
  for (let ready = 0; ready < count; ) {
    const { items } = await api.list(nodeResource, { labelSelector: 'type=kwok' }, { signal })
    ready = items.filter(it =>
      it.status?.conditions?.some(c => c.type === 'Ready' && c.status === 'True'),
    ).length
    await assertRunning()
    if (ready < count) await sleep(250, undefined, { signal })
  }
}

async function removeNodes(paths: ClusterPaths, names: readonly string[]): Promise<void> {
  const client = await connect(paths)
  try {
    for (const name of names) {
      try {
        await client.delete(nodeResource, { name })
      } catch (error) {
        if (!isKubeError(error, 'NotFound')) throw error
      }
    }
  } finally {
    await client.close()
  }
}

/**
 * Runs a program as a process of the control plane (its network, pids and cgroups, so that it ends with it), but with
 * this machine's files.
 */
async function launch(plan: ClusterPlan, paths: ClusterPaths, name: string, argv: readonly string[]) {
  const logPath = join(paths.machine('cp').logs, `${name}.log`)
  const pidFile = join(paths.machine('cp').root, `${name}.pid`)
  await rm(pidFile, { force: true })
  const groups = await cgroupsOf(await detectCgroups(), plan.controlPlane.label)
  const script = [
    ...groups.map(path => `echo 0 > ${quote(`${path}/system/cgroup.procs`)}`),
    // /proc is this machine's, so this pid is valid for us.
    `read -r pid _ < /proc/self/stat; echo "$pid" > ${quote(`${pidFile}.new`)}; mv ${quote(`${pidFile}.new`)} ${quote(pidFile)}`,
    'exec "$@"',
  ].join('\n')
  const init = (await readFile(paths.machine('cp').pidFile, 'utf8')).trim()
  const log = openSync(logPath, 'a')
  const child = spawn(
    'nsenter',
    ['--target', init, '--net', '--pid', '--', 'bash', '-c', script, name, ...argv],
    { stdio: ['ignore', log, log], detached: true },
  )
  closeSync(log)
  await new Promise<void>((resolve, reject) => {
    child.on('spawn', resolve)
    child.on('error', reject)
  })
  child.unref()
  for (let tries = 0; tries < 250; tries++) {
    const pid = await readFile(pidFile, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
    const identity = pid === undefined ? undefined : await identify(Number(pid))
    if (identity !== undefined) return identity
    await sleep(20)
  }
  throw new PlaygroundError(`${name} did not start`, { logPath })
}
