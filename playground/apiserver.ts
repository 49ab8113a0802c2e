import { mkdir, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'yaml'
import { type Authority, type Certificate, writeServiceAccountKey } from './pki.ts'

/** Who did what and was it allowed, for every request; RequestReceived would only say the same twice. */
export const auditPolicy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'Metadata' }],
}

export interface ApiserverInputs {
  /** Existing directory for keys, certificates and the policy; closed to others. */
  readonly pkiDir: string
  readonly authority: Authority
  /** Address to listen on and to be found at. */
  readonly address: string
  readonly port: number
  readonly etcd: string
  readonly serviceCidr: string
  /** First address of serviceCidr, which the `kubernetes` Service gets. */
  readonly serviceAddress: string
  readonly auditLogPath: string
  readonly disabledAdmissionPlugins?: readonly string[]
  /** Appended, so that they win over the ones given here. */
  readonly extraArgs?: readonly string[]
}

export interface ApiserverFiles {
  readonly args: readonly string[]
  readonly serviceAccountKeyPath: string
  /** Client certificate of the cluster's administrator. */
  readonly admin: Certificate
}

/** Issues what an API server needs and gives its command line: TLS both ways, Node and RBAC authorisation, audit log. */
export async function prepareApiserver(inputs: ApiserverInputs): Promise<ApiserverFiles> {
  const { pkiDir, authority } = inputs
  await mkdir(pkiDir, { recursive: true, mode: 0o700 })
  const policyPath = join(pkiDir, 'audit-policy.yaml')
  await writeFile(policyPath, stringify(auditPolicy))
  const [serving, kubeletClient, admin, serviceAccount] = await Promise.all([
    authority.issue({
      name: 'apiserver',
      commonName: 'kube-apiserver',
      usage: 'server',
      hosts: [
        'kubernetes',
        'kubernetes.default',
        'kubernetes.default.svc',
        'kubernetes.default.svc.cluster.local',
        'localhost',
        '127.0.0.1',
        ...new Set([inputs.address, inputs.serviceAddress]),
      ],
    }),
    authority.issue({
      name: 'apiserver-kubelet-client',
      commonName: 'kube-apiserver-kubelet-client',
      organizations: ['system:masters'],
      usage: 'client',
    }),
    authority.issue({
      name: 'admin',
      commonName: 'kubernetes-admin',
      organizations: ['system:masters'],
      usage: 'client',
    }),
    writeServiceAccountKey(pkiDir),
  ])
  const disabled = inputs.disabledAdmissionPlugins ?? []
  const args = [
    `--etcd-servers=${inputs.etcd}`,
    `--bind-address=${inputs.address}`,
    `--advertise-address=${inputs.address}`,
    `--secure-port=${inputs.port}`,
    `--tls-cert-file=${serving.certPath}`,
    `--tls-private-key-file=${serving.keyPath}`,
    `--client-ca-file=${authority.caPath}`,
    `--kubelet-certificate-authority=${authority.caPath}`,
    `--kubelet-client-certificate=${kubeletClient.certPath}`,
    `--kubelet-client-key=${kubeletClient.keyPath}`,
    '--kubelet-preferred-address-types=InternalIP',
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    ...(disabled.length > 0 ? [`--disable-admission-plugins=${disabled.join(',')}`] : []),
    '--allow-privileged=true',
    `--service-cluster-ip-range=${inputs.serviceCidr}`,
    '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
    `--service-account-key-file=${serviceAccount.publicPath}`,
    `--service-account-signing-key-file=${serviceAccount.privatePath}`,
    `--audit-policy-file=${policyPath}`,
    `--audit-log-path=${inputs.auditLogPath}`,
    // One file for a playground's whole life: its tests read it from the start. MiB.
    '--audit-log-maxsize=2000',
    '--profiling=false',
    ...(inputs.extraArgs ?? []),
  ]
  return { args, serviceAccountKeyPath: serviceAccount.privatePath, admin }
}

export interface Tls {
  readonly ca: Buffer
  readonly cert: Buffer
  readonly key: Buffer
}

/**
 * Waits until /readyz says ok: bootstrap roles and system namespaces are in place then. `failed` ends the wait with
 * its error, for a server that dies instead. Throws the signal's reason.
 */
export async function waitReady(
  server: { readonly address: string; readonly port: number },
  tls: Tls,
  failed: () => Error | undefined,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const error = failed()
    if (error !== undefined) throw error
    if (await readyz(server, tls, signal)) return
    await sleep(50, undefined, { signal })
  }
}

/** One GET of /readyz; false for every way in which the server may not be there yet. */
export function readyz(
  server: { readonly address: string; readonly port: number },
  tls: Tls,
  signal: AbortSignal,
): Promise<boolean> {
  signal.throwIfAborted()
  return new Promise(resolve => {
    const get = request(
      {
        host: server.address,
        port: server.port,
        path: '/readyz',
        ...tls,
        agent: false,
        timeout: 2000,
        signal,
      },
      response => {
        response.resume()
        response.on('end', () => resolve(response.statusCode === 200))
        response.on('error', () => resolve(false))
      },
    )
    get.on('timeout', () => get.destroy())
    get.on('error', () => resolve(false))
    get.end()
  })
}
