import type { ClusterPlan } from '../plan.ts'
import { apiIsReady, type Service, socketExists } from './init.ts'
import { MACHINE_DIR } from './node.ts'

export const controlPlanePath = ['/opt/understudy/kube', '/opt/understudy/etcd', '/opt/understudy/coredns']
const ETCD_SOCKET = '/run/etcd.sock'
export const etcdEndpoint = `unix://${ETCD_SOCKET}`

/** @param pki directory with the cluster's keys, as the machine sees it */
export function controlPlaneServices(
  plan: ClusterPlan,
  pki: string,
  apiserverArgs: readonly string[],
): Service[] {
  const api = [apiIsReady(plan.controlPlane.address, plan.apiPort, `${pki}/ca.crt`)]
  return [
    {
      name: 'etcd',
      argv: [
        'etcd',
        '--name=cp',
        '--data-dir=/var/lib/etcd/data',
        // A socket that only the control plane's own processes can see needs no certificates.
        `--listen-client-urls=${etcdEndpoint}`,
        '--advertise-client-urls=http://127.0.0.1:2379',
        '--listen-peer-urls=unix:///run/etcd-peer.sock',
        '--initial-advertise-peer-urls=http://127.0.0.1:2380',
        '--initial-cluster=cp=http://127.0.0.1:2380',
        '--log-level=warn',
      ],
    },
    {
      name: 'kube-apiserver',
      argv: ['kube-apiserver', ...apiserverArgs],
      after: [socketExists(ETCD_SOCKET)],
    },
    {
      name: 'kube-controller-manager',
      argv: [
        'kube-controller-manager',
        `--kubeconfig=${MACHINE_DIR}/kube-controller-manager.kubeconfig`,
        '--use-service-account-credentials=true',
        `--service-account-private-key-file=${pki}/service-account.key`,
        `--root-ca-file=${pki}/ca.crt`,
        '--allocate-node-cidrs=false',
        // One instance: there is no other to elect.
        '--leader-elect=false',
        '--bind-address=127.0.0.1',
      ],
      after: api,
    },
    {
      name: 'kube-scheduler',
      argv: [
        'kube-scheduler',
        `--kubeconfig=${MACHINE_DIR}/kube-scheduler.kubeconfig`,
        '--leader-elect=false',
        '--bind-address=127.0.0.1',
      ],
      after: api,
    },
    {
      name: 'coredns',
      argv: ['coredns', '-conf', `${MACHINE_DIR}/Corefile`],
      // Start only after CoreDNS's role exists: once refused it backs off, and names resolve seconds later.
      after: [`[ -e ${MACHINE_DIR}/${DNS_ALLOWED} ]`],
    },
  ]
}

/** File that appears in MACHINE_DIR once the objects of dnsManifests exist. */
export const DNS_ALLOWED = 'dns-allowed'

export function renderCorefile(): string {
  return `.:53 {
    errors
    ready :8181
    kubernetes cluster.local in-addr.arpa {
        kubeconfig ${MACHINE_DIR}/coredns.kubeconfig
        ttl 5
    }
    cache 5
    loadbalance
}
`
}

/** Returns the objects that make CoreDNS, a process of the control plane, the cluster's `kube-dns`. */
export function dnsManifests(plan: ClusterPlan): object[] {
  const metadata = { name: 'kube-dns', namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' } }
  const ports = [
    { name: 'dns', port: 53, protocol: 'UDP' },
    { name: 'dns-tcp', port: 53, protocol: 'TCP' },
  ]
  return [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'system:coredns' },
      rules: [
        { apiGroups: [''], resources: ['services', 'namespaces', 'pods'], verbs: ['list', 'watch'] },
        { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
      ],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'system:coredns' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:coredns' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'system:coredns' }],
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      // No selector: the endpoint is not a pod, so that name resolution survives the loss of any node.
      spec: { clusterIP: plan.dnsAddress, ports: ports.map(port => ({ ...port, targetPort: 53 })) },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        ...metadata,
        labels: { ...metadata.labels, 'kubernetes.io/service-name': 'kube-dns' },
      },
      addressType: 'IPv4',
      endpoints: [{ addresses: [plan.controlPlane.address], conditions: { ready: true } }],
      ports,
    },
  ]
}
