/**
 * Kinds of nodes that refuse something of an installation, as data: `doctor` names the cure beside nodes that do not work, and docs/clouds.md
 * has the same as a table. The facts are those of the vendors; this project has no such nodes.
 */
import type { Node } from '../../kube/resources.ts'

/** A fact of a Node object. */
export type Mark =
  | { readonly label: string; readonly is: string | undefined }
  | { readonly field: 'osImage' | 'kubeletVersion' | 'providerID' | 'name'; readonly matches: RegExp }

export interface Refusal {
  readonly what: string
  readonly cure: string
  /** Where the vendor says so, or where users have met it. */
  readonly source: string
  /** True where this concerns no check of a node: doctor does not mention it. */
  readonly aside?: true
}

export interface Platform {
  readonly name: string
  /** One of these shows it. */
  readonly shownBy: readonly Mark[]
  /** False where no DaemonSet or no privileged pod can run: such a node keeps no memory, and that is no fault. */
  readonly agents: boolean
  readonly refuses: readonly Refusal[]
}

const between = 'let 9443/TCP and 9443/UDP through between nodes: docs/install.md, "Ports of nodes"'

export const platforms: readonly Platform[] = [
  {
    name: 'GKE Autopilot',
    shownBy: [{ field: 'name', matches: /^gk3-/ }],
    agents: false,
    refuses: [
      {
        what: 'privileged pods, which the agents are',
        cure: 'use a Standard cluster for sets with memory; without memory, apply crds/, deploy/admission and deploy/operator only',
        source: 'https://cloud.google.com/kubernetes-engine/docs/concepts/autopilot-security',
      },
    ],
  },
  {
    name: 'GKE Sandbox',
    shownBy: [{ label: 'sandbox.gke.io/runtime', is: 'gvisor' }],
    agents: true,
    refuses: [
      {
        what: 'checkpoints of its pods by CRIU: they run on gVisor, not on the kernel of the node',
        cure: 'put sets with memory on other nodes (nodeSelector of their template)',
        source: 'https://cloud.google.com/kubernetes-engine/docs/concepts/sandbox-pods',
      },
    ],
  },
  {
    name: 'GKE',
    shownBy: [
      { field: 'providerID', matches: /^gce:/ },
      { field: 'kubeletVersion', matches: /-gke\./ },
    ],
    agents: true,
    refuses: [
      {
        what: 'on some clusters, pods of the class system-node-critical outside of kube-system (`insufficient quota to match these scopes`)',
        cure: 'add the component deploy/critical-pods-quota, or deploy/own-priority-class, to your overlay, or set agents.priorityClass of the chart to system-with-quota or own: docs/clouds.md',
        source: 'https://github.com/cilium/cilium/issues/13852',
      },
    ],
  },
  {
    name: 'EKS Fargate',
    shownBy: [{ label: 'eks.amazonaws.com/compute-type', is: 'fargate' }],
    agents: false,
    refuses: [
      {
        what: 'DaemonSets and privileged pods, which the agents are',
        cure: 'put sets with memory on nodes of EC2',
        source: 'https://docs.aws.amazon.com/eks/latest/userguide/fargate.html',
      },
    ],
  },
  {
    name: 'Bottlerocket',
    shownBy: [{ field: 'osImage', matches: /^Bottlerocket/ }],
    agents: true,
    refuses: [
      {
        what: 'changes of SELinux labels by privileged pods (their own label is control_t, whatever the pod asks for), and CRIU has to restore labels',
        cure: 'put sets with memory on nodes of another image, such as Amazon Linux 2023',
        source: 'https://github.com/bottlerocket-os/bottlerocket/issues/3791',
      },
    ],
  },
  {
    name: 'EKS',
    shownBy: [
      { field: 'kubeletVersion', matches: /-eks-/ },
      { label: 'eks.amazonaws.com/nodegroup', is: undefined },
    ],
    agents: true,
    refuses: [
      {
        what: 'traffic between agents, if the nodes have security groups of their own that let only some ports through',
        cure: between,
        source: 'https://docs.aws.amazon.com/eks/latest/userguide/sec-group-reqs.html',
      },
      {
        what: 'UDP at a Service of type LoadBalancer, if the in-tree controller makes a Classic Load Balancer for it',
        cure: 'install the AWS Load Balancer Controller, and annotate the Service as it asks, or use service.type NodePort',
        source: 'https://docs.aws.amazon.com/eks/latest/userguide/network-load-balancing.html',
        aside: true,
      },
    ],
  },
  {
    name: 'AKS virtual nodes',
    shownBy: [{ label: 'type', is: 'virtual-kubelet' }],
    agents: false,
    refuses: [
      {
        what: 'DaemonSets, which the agents are',
        cure: 'put sets on nodes of a pool of virtual machines',
        source: 'https://learn.microsoft.com/azure/aks/virtual-nodes',
      },
    ],
  },
  {
    name: 'AKS',
    shownBy: [{ label: 'kubernetes.azure.com/cluster', is: undefined }],
    agents: true,
    refuses: [
      {
        what: 'privileged pods, where Azure Policy enforces a pod security initiative',
        cure: 'exclude the namespace understudy-agents from the initiative',
        source: 'https://learn.microsoft.com/azure/aks/use-azure-policy',
      },
    ],
  },
  {
    name: 'Talos',
    shownBy: [{ field: 'osImage', matches: /^Talos/ }],
    agents: true,
    refuses: [
      {
        what: 'privileged pods, in namespaces without the label pod-security.kubernetes.io/enforce=privileged',
        cure: 'label the namespace of the agents so: deploy/agent/namespace.yaml does, tools that create namespaces themselves do not',
        source: 'https://www.talos.dev/latest/kubernetes-guides/configuration/pod-security',
      },
    ],
  },
  {
    name: 'k3s',
    shownBy: [{ field: 'kubeletVersion', matches: /\+k3s/ }],
    agents: true,
    refuses: [
      {
        what: 'a second Service of type LoadBalancer with the same port: its load balancer opens the port on each node',
        cure: 'use service.type NodePort, or another load balancer',
        source: 'https://docs.k3s.io/networking/networking-services',
        aside: true,
      },
    ],
  },
  {
    name: 'kind',
    shownBy: [{ field: 'providerID', matches: /^kind:/ }],
    agents: true,
    refuses: [
      {
        what: 'more inotify instances and watches than the machine allows: all nodes share its limits (`too many open files`)',
        cure: 'raise fs.inotify.max_user_instances and fs.inotify.max_user_watches on the machine: docs/try-on-kind.md',
        source: 'https://kind.sigs.k8s.io/docs/user/known-issues/',
      },
    ],
  },
]

/** Returns the first platform that a node shows. */
export function platformOf(node: Node): Platform | undefined {
  return platforms.find(({ shownBy }) => shownBy.some(mark => shows(node, mark)))
}

function shows({ metadata, spec, status }: Node, mark: Mark): boolean {
  if ('label' in mark) {
    const value = metadata.labels?.[mark.label]
    return value !== undefined && (mark.is === undefined || value === mark.is)
  }
  const fields = {
    name: metadata.name,
    providerID: spec?.providerID,
    osImage: status?.nodeInfo?.osImage,
    kubeletVersion: status?.nodeInfo?.kubeletVersion,
  }
  return mark.matches.test(fields[mark.field] ?? '')
}
