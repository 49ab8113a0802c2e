/** The text files of a node's seed: its identity in one cluster. Pure. */
import { stringify } from 'yaml'
import type { ClusterPlan, NodePlan } from '../playground/plan.ts'
import {
  cniConfiguration,
  kubeletConfiguration,
  MACHINE_DIR,
  nodePath,
  nodeServices,
  nodeSysctls,
  proxyConfiguration,
} from '../playground/render/node.ts'
import { commandLine, quote } from '../playground/render/shell.ts'
import type { NodeKind } from './kinds.ts'

export interface SeedInputs {
  readonly plan: ClusterPlan
  readonly guest: NodePlan
  readonly kind: NodeKind
  readonly pauseImage: string
}

/** Returns the files for MACHINE_DIR, by name. Credentials and keys are put beside them. */
export function seedFiles(inputs: SeedInputs): Record<string, string> {
  const { plan, guest, kind, pauseImage } = inputs
  const services = nodeServices(plan, guest).filter(({ name }) => name !== 'containerd')
  return {
    ...Object.fromEntries(
      services.map(({ name, argv }) => [
        `${name}.sh`,
        `export PATH=${[...nodePath, '/usr/sbin', '/usr/bin'].join(':')}\nexec ${commandLine(argv)}\n`,
      ]),
    ),
    'kubelet.yaml': stringify(guestKubelet(plan, guest)),
    'kube-proxy.yaml': stringify(proxyConfiguration(plan, guest)),
    'containerd.toml': containerdFile(kind, pauseImage),
    'cni/10-understudy.conflist': JSON.stringify(cniConfiguration(guest), undefined, 2),
    'start.sh': startScript(inputs),
  }
}

/** The settings of the playground's kubelets that only their namespaces need are those of a usual node here. */
export function guestKubelet(plan: ClusterPlan, guest: NodePlan): object {
  return {
    ...kubeletConfiguration(plan, guest),
    cgroupDriver: 'systemd',
    cgroupRoot: '/',
    enforceNodeAllocatable: ['pods'],
    failCgroupV1: true,
    // An emulated processor needs minutes for images that others unpack in seconds.
    runtimeRequestTimeout: '10m',
  }
}

/** containerd 1 reads version 2 of its configuration, and containerd 2 reads version 3. */
function containerdFile({ containerd }: NodeKind, pauseImage: string): string {
  switch (containerd) {
    case 'distribution':
      return `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${pauseImage}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${MACHINE_DIR}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
`
    case 'playground':
      return `version = 3
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['/usr/lib/cni']
  conf_dir = '${MACHINE_DIR}/cni'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
    SystemdCgroup = true
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '${pauseImage}'
`
    default:
      return containerd satisfies never
  }
}

/** Directory of the seed with containerd and its programs, for kinds that do not use the package. */
export const CONTAINERD = '/opt/understudy/containerd'

/** The package's unit stays as it is, with its limits; only the program is another. */
const otherContainerd = `mkdir -p /run/systemd/system/containerd.service.d
cat > /run/systemd/system/containerd.service.d/program.conf <<'END'
[Service]
Environment=PATH=${CONTAINERD}:/usr/sbin:/usr/bin
ExecStart=
ExecStart=${CONTAINERD}/containerd
END
systemctl daemon-reload
`

function startScript({ plan, guest, kind }: SeedInputs): string {
  const hosts = [plan.controlPlane, ...plan.nodes, guest].map(({ name, address }) => `${address} ${name}`)
  return `set -eu
echo ${quote(guest.name)} > /proc/sys/kernel/hostname
printf '%s\\n' '127.0.0.1 localhost' ${hosts.map(quote).join(' ')} > /etc/hosts
until [ -e /sys/class/net/eth0 ]; do sleep 0.2; done
ip link set lo up
ip addr add ${guest.address}/24 dev eth0
ip link set eth0 up
ip route add default via ${plan.controlPlane.address}
${plan.nodes.map(node => `ip route add ${node.podCidr} via ${node.address}`).join('\n')}
modprobe br_netfilter
${Object.entries(nodeSysctls)
  .map(([name, value]) => `echo ${quote(value)} > /proc/sys/${name}`)
  .join('\n')}
install -D -m 644 ${MACHINE_DIR}/containerd.toml /etc/containerd/config.toml
${kind.containerd === 'playground' ? otherContainerd : ''}`
}
