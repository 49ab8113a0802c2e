import { stringify } from 'yaml'
import type { ClusterPlan, NodePlan } from '../plan.ts'
import { apiIsReady, type Service, socketExists } from './init.ts'

/** Directory inside a machine with the files made for it. */
export const MACHINE_DIR = '/opt/understudy/machine'
const CONTAINERD_SOCKET = '/run/containerd/containerd.sock'

export const nodePath = ['/opt/understudy/kube', '/opt/understudy/containerd']

/** Returns the files for MACHINE_DIR, by name. Certificates and kubeconfigs are put beside them. */
export function renderNodeFiles(
  plan: ClusterPlan,
  node: NodePlan,
  options: { readonly pauseImage: string; readonly lowerOomScore: boolean },
): Record<string, string> {
  return {
    'kubelet.yaml': stringify(kubeletConfiguration(plan, node)),
    'kube-proxy.yaml': stringify(proxyConfiguration(plan, node)),
    'containerd.toml': containerdConfiguration(options),
    'cni/10-understudy.conflist': JSON.stringify(cniConfiguration(node), undefined, 2),
  }
}

export function kubeletConfiguration(plan: ClusterPlan, node: NodePlan): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: `${MACHINE_DIR}/ca.crt` },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: `${MACHINE_DIR}/kubelet-serving.crt`,
    tlsPrivateKeyFile: `${MACHINE_DIR}/kubelet-serving.key`,
    clusterDomain: 'cluster.local',
    clusterDNS: [plan.dnsAddress],
    resolvConf: '/etc/resolv.conf',
    containerRuntimeEndpoint: `unix://${CONTAINERD_SOCKET}`,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${node.label}`,
    enforceNodeAllocatable: ['none'],
    failCgroupV1: false,
    failSwapOn: false,
    serializeImagePulls: false,
    // All nodes share this machine's disk and memory, so evicting pods or images would free nothing for them.
    evictionHard: {
      'memory.available': '0%',
      'nodefs.available': '0%',
      'nodefs.inodesFree': '0%',
      'imagefs.available': '0%',
    },
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
  }
}

export function proxyConfiguration(plan: ClusterPlan, node: NodePlan): object {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'nftables',
    clientConnection: { kubeconfig: `${MACHINE_DIR}/kube-proxy.kubeconfig` },
    clusterCIDR: plan.podCidr,
    hostnameOverride: node.name,
    // A network namespace may not set these.
    conntrack: { maxPerCore: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
  }
}

export function cniConfiguration(node: NodePlan): object {
  return {
    cniVersion: '1.0.0',
    name: 'understudy',
    plugins: [
      {
        type: 'bridge',
        bridge: 'cni0',
        isGateway: true,
        // Pods keep their addresses on the whole network: every machine has a route to every node's pods.
        ipMasq: false,
        hairpinMode: true,
        ipam: { type: 'host-local', ranges: [[{ subnet: node.podCidr }]], routes: [{ dst: '0.0.0.0/0' }] },
      },
    ],
  }
}

export function containerdConfiguration(options: {
  readonly pauseImage: string
  readonly lowerOomScore: boolean
}): string {
  return `version = 3
disabled_plugins = ['io.containerd.snapshotter.v1.blockfile', 'io.containerd.snapshotter.v1.btrfs', 'io.containerd.snapshotter.v1.devmapper', 'io.containerd.snapshotter.v1.erofs', 'io.containerd.snapshotter.v1.zfs']
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = ${!options.lowerOomScore}
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['/usr/lib/cni']
  conf_dir = '${MACHINE_DIR}/cni'
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = '/etc/containerd/certs.d'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '${options.pauseImage}'
`
}

export function nodeServices(plan: ClusterPlan, node: NodePlan): Service[] {
  const api = apiIsReady(plan.controlPlane.address, plan.apiPort, `${MACHINE_DIR}/ca.crt`)
  return [
    { name: 'containerd', argv: ['containerd', '--config', `${MACHINE_DIR}/containerd.toml`] },
    {
      name: 'kubelet',
      argv: [
        'kubelet',
        `--kubeconfig=${MACHINE_DIR}/kubelet.kubeconfig`,
        `--config=${MACHINE_DIR}/kubelet.yaml`,
        `--hostname-override=${node.name}`,
        `--node-ip=${node.address}`,
        '--v=2',
      ],
      after: [socketExists(CONTAINERD_SOCKET), api],
    },
    { name: 'kube-proxy', argv: ['kube-proxy', `--config=${MACHINE_DIR}/kube-proxy.yaml`], after: [api] },
  ]
}

export const nodeSysctls: Readonly<Record<string, string>> = {
  'net/ipv4/ip_forward': '1',
  // A reply from a pod to its neighbour on the same bridge must pass conntrack; otherwise the address translation of a
  // Service is not reversed in it.
  'net/bridge/bridge-nf-call-iptables': '1',
}
