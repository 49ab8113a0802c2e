import { mkdir, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'yaml'
import { type Authority, type Certificate, writeServiceAccountKey } from './pki.ts'

/**
 * Records who did what, and whether it was allowed, for every request. The stage RequestReceived would only repeat
 * that.
 */
export const auditPolicy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'Metadata' }],
}

export interface ApiserverInputs {
  /** Existing directory for keys, certificates and the policy; not accessible to other users. */
  readonly pkiDir: string
  readonly authority: Authority
  /** Address on which the server listens and clients find it. */
  readonly address: string
  readonly port: number
  readonly etcd: string
  readonly serviceCidr: string
  /** First address of serviceCidr; the `kubernetes` Service gets it. */
  readonly serviceAddress: string
  readonly auditLogPath: string
  readonly disabledAdmissionPlugins?: readonly string[]
  /** Appended after the arguments set here, so that they override them. */
  readonly extraArgs?: readonly string[]
}

export interface ApiserverFiles {
  readonly args: readonly string[]
  readonly serviceAccountKeyPath: string
  /** Client certificate of the cluster's administrator. */
  readonly admin: Certificate
}

/**
 * Issues keys and certificates for an API server and returns its command line: TLS in both directions, Node and RBAC
 * authorisation, audit log.
 */
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
  const args = commandLine(inputs, policyPath, { serving, kubeletClient, serviceAccount })
  return { args, serviceAccountKeyPath: serviceAccount.privatePath, admin }
}

interface Keys {
  readonly serving: Certificate
  readonly kubeletClient: Certificate
  readonly serviceAccount: Awaited<ReturnType<typeof writeServiceAccountKey>>
}

function commandLine(
  inputs: ApiserverInputs,
  policyPath: string,
  { serving, kubeletClient, serviceAccount }: Keys,
): readonly string[] {
  const disabled = inputs.disabledAdmissionPlugins ?? []
  const { caPath } = inputs.authority
  return [
    `--etcd-servers=${inputs.etcd}`,
    `--bind-address=${inputs.address}`,
    `--advertise-address=${inputs.address}`,
    `--secure-port=${inputs.port}`,
    `--tls-cert-file=${serving.certPath}`,
    `--tls-private-key-file=${serving.keyPath}`,
    `--client-ca-file=${caPath}`,
    `--kubelet-certificate-authority=${caPath}`,
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
    // MiB. One file for the playground's whole life, because its tests read the log from the start.
    '--audit-log-maxsize=2000',
    '--profiling=false',
    ...(inputs.extraArgs ?? []),
  ]
}

export interface Tls {
  readonly ca: Buffer
  readonly cert: Buffer
  readonly key: Buffer
}

/**
 * Resolves when /readyz says ok: by then bootstrap roles and system namespaces exist. If the server dies instead,
 * `failed` returns an error, which ends the wait.
 * @throws that error, or the signal's reason
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

/** Sends one GET of /readyz. Resolves with false for every way in which the server may not be up yet. */
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
