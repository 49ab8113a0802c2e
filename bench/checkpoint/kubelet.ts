import { readFile } from 'node:fs/promises'
import type { Cluster } from '../../playground/cluster.ts'
import type { Api } from '../../src/kube/api.ts'
import type { Pod } from '../../src/kube/resources.ts'
import { demand } from '../bench.ts'

const programs = '/var/lib/understudy/bin'
/** Directory of what CRIU knows of the kernel. */
const known = '/run/bench-criu'

/**
 * Installs the programs that containerd and runc need for the kubelet's checkpoint API and that a playground's nodes
 * lack: `gzip`, and `criu` and `tar` as the node's agent has installed them. Call before the node's first checkpoint:
 * containerd looks for CRIU only once.
 */
export async function makeCheckpointsPossible(
  cluster: Cluster,
  node: string,
  signal: AbortSignal,
): Promise<void> {
  const sh = (script: string, input: { input?: string; inputFile?: string } = {}) =>
    cluster.inNode(node, ['sh', '-c', script], { signal, ...input })
  const [installed] = (await sh(`ls -t ${programs}`)).trim().split('\n')
  const directory = `${programs}/${demand(installed || undefined, `the agent's programs on ${node}`)}/criu`
  const loader = `${directory}/ld.so --library-path ${directory}/lib`
  const install = async (name: string, input: { input?: string; inputFile?: string }) =>
    sh(`cat > /usr/sbin/${name} && chmod 755 /usr/sbin/${name}`, input)
  const script = (command: string) => ({ input: `#!/bin/bash\nexec 200< ${known}\nexec ${command} "$@"\n` })
  // Without CAP_SYS_RESOURCE CRIU could not dump other users' processes; the preload is the agent's remedy too. It keeps
  // what CRIU knows of the kernel in the directory that it finds open.
  await sh(`mkdir -p ${known}`)
  const preloaded = `${loader} --preload ${directory}/criu-shim.so ${directory}/criu`
  await install('criu', script(`env UNDERSTUDY_KDAT=write ${preloaded}`))
  await install('tar', script(`${loader} ${directory}/tar`))
  await install('gzip', { inputFile: await realGzip() })
  // As the agent does: connections are left alone and not locked by iptables rules, because the nodes have no iptables.
  const connections = 'network-lock skip\ntcp-close\nskip-in-flight\n'
  await sh('mkdir -p /etc/criu && cat > /etc/criu/runc.conf', { input: connections })
}

async function realGzip(): Promise<string> {
  for (const path of ['/usr/bin/gzip', '/bin/gzip'])
    if ((await readFile(path).catch(() => undefined))?.subarray(1, 4).toString() === 'ELF') return path
  throw new Error('this machine has no gzip to copy to a node')
}

/** Makes a checkpoint through the kubelet and deletes it. @returns seconds */
export async function kubeletCheckpoint(
  api: Api,
  cluster: Cluster,
  pod: Pod,
  container: string,
  signal: AbortSignal,
): Promise<number> {
  const { name, namespace } = pod.metadata
  const node = demand(pod.spec?.nodeName, 'a node')
  const path = `/api/v1/nodes/${node}/proxy/checkpoint/${namespace}/${name}/${container}`
  const begun = performance.now()
  const { status, body } = await api.request('POST', path, { signal, timeoutMs: timeoutMs })
  const seconds = (performance.now() - begun) / 1000
  if (status !== 200) throw new Error(`the kubelet's checkpoint API: ${status} ${JSON.stringify(body)}`)
  await cluster.inNode(node, ['sh', '-c', 'rm -f /var/lib/kubelet/checkpoints/*'], { signal })
  return seconds
}

const timeoutMs = 120_000
