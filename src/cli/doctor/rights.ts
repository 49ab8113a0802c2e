import type { Session } from '../session.ts'
import { about, type Finding } from './finding.ts'
import { ourKinds } from './kind-names.ts'

/** A right, as the API server decides on it. */
export interface NamedRight {
  readonly verb: string
  readonly group: string
  readonly resource: string
  /** Absent: any name. */
  readonly name?: string
  /** Absent: cluster-wide. */
  readonly namespace?: string | undefined
}

export interface Asked extends NamedRight {
  /** The command that needs this right. */
  readonly command: 'status' | 'checkpoint' | 'promote' | 'doctor'
}

export interface Right extends Asked {
  readonly allowed: boolean
}

interface Namespaces {
  readonly namespace: string
  readonly operatorNamespace: string
  readonly agentNamespace: string
}

/**
 * All rights that the commands need, with two exceptions. The wake key: few users should read Secrets, and `doctor`
 * reports that itself. And `uninstall`, which is for administrators.
 */
export function asked({ namespace, operatorNamespace, agentNamespace }: Namespaces): readonly Asked[] {
  const ours = 'backup.example.com'
  return [
    { command: 'status', verb: 'list', group: ours, resource: 'backuppodsets', namespace },
    { command: 'status', verb: 'watch', group: ours, resource: 'backuppodsets', namespace },
    { command: 'status', verb: 'list', group: '', resource: 'pods', namespace },
    { command: 'status', verb: 'watch', group: '', resource: 'pods', namespace },
    { command: 'status', verb: 'list', group: ours, resource: 'nodereports' },
    { command: 'checkpoint', verb: 'watch', group: ours, resource: 'nodereports' },
    { command: 'checkpoint', verb: 'patch', group: '', resource: 'pods', namespace },
    { command: 'promote', verb: 'delete', group: '', resource: 'pods', namespace },
    ...['migrations', 'migratingpods'].map(resource => ({
      ...({ command: 'doctor', verb: 'list', group: ours, resource, namespace } as const),
    })),
    { command: 'doctor', verb: 'list', group: ours, resource: 'podmigrationjobs' },
    { command: 'doctor', verb: 'list', group: 'policy', resource: 'poddisruptionbudgets', namespace },
    ...ourKinds.map(plural => ({
      ...({ command: 'doctor', verb: 'get', group: 'apiextensions.k8s.io' } as const),
      ...{ resource: 'customresourcedefinitions', name: `${plural}.${ours}` },
    })),
    {
      ...{ command: 'doctor', verb: 'get', group: 'apps', resource: 'deployments' },
      ...{ name: 'understudy-operator', namespace: operatorNamespace },
    },
    {
      ...{ command: 'doctor', verb: 'get', group: 'coordination.k8s.io', resource: 'leases' },
      ...{ name: 'understudy-operator', namespace: operatorNamespace },
    },
    {
      ...{ command: 'doctor', verb: 'get', group: 'apps', resource: 'daemonsets' },
      ...{ name: 'understudy-agent', namespace: agentNamespace },
    },
    { command: 'doctor', verb: 'list', group: '', resource: 'nodes' },
  ]
}

/** Asks the API server for each right whether the user has it. */
export const readRights = <R extends NamedRight>(
  { api, call }: Session,
  all: readonly R[],
): Promise<readonly (R & { readonly allowed: boolean })[]> =>
  Promise.all(
    all.map(async right => {
      const { verb, group, resource, name, namespace } = right
      const resourceAttributes = { verb, group, resource, name, namespace }
      const { body } = await api.request('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        ...call,
        body: {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SelfSubjectAccessReview',
          spec: { resourceAttributes },
        },
      })
      const { status } = body as { status?: { allowed?: boolean } }
      return { ...right, allowed: status?.allowed === true }
    }),
  )

export const rightText = ({ verb, resource, group, namespace }: NamedRight): string =>
  `${verb} ${resource}${group === '' ? '' : `.${group}`}${namespace === undefined ? ' in the whole cluster' : ` in ${namespace}`}`

const cures: Readonly<Record<Asked['command'], string>> = {
  status:
    'bind the ClusterRole view in the namespace; for nodereports bind understudy-view with a ClusterRoleBinding',
  checkpoint: 'bind the ClusterRole edit in the namespace, and understudy-view with a ClusterRoleBinding',
  promote: 'bind the ClusterRole edit in the namespace',
  doctor:
    'no action needed if others manage the installation; otherwise bind the ClusterRole understudy-doctor',
}

/** Findings about the commands that this user may not run. A missing right is a note, not a fault. */
export function rightsFindings(rights: readonly Right[], user: string | undefined): readonly Finding[] {
  const { ok, note } = about('you')
  const who = user === undefined ? 'you' : user
  const missing = rights.filter(({ allowed }) => !allowed)
  return (['status', 'checkpoint', 'promote', 'doctor'] as const).map(command => {
    const lacking = missing.filter(right => right.command === command)
    return lacking.length === 0
      ? ok(command, `${who} may do everything that \`${command}\` needs`)
      : note(command, `${who} may not: ${lacking.map(rightText).join(', ')}`, cures[command])
  })
}
