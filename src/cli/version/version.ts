import { type NodeReport, nodeReports, parseReport } from '../../api/node-report.ts'
import { isKubeError, messageOf } from '../../kube/errors.ts'
import { listAll } from '../../kube/list-all.ts'
import { ownSchemas } from '../doctor/doctor.ts'
import type { Finding } from '../doctor/finding.ts'
import { type Installation, type Places, readVersions } from '../doctor/installation.ts'
import { kindsFindings } from '../doctor/kinds.ts'
import { tagOf } from '../doctor/version.ts'
import { answer } from '../output/answer.ts'
import type { Session } from '../session.ts'

/** Agents of one version. */
export interface AgentVersion {
  readonly version: string
  readonly nodes: readonly string[]
}

export interface Versions {
  readonly client: { readonly version: string; readonly node: string; readonly platform: string }
  readonly kubernetes: string
  /** Absent: not there, or this user may not read it. */
  readonly operator?: string
  readonly agents?: readonly AgentVersion[]
  readonly kinds: readonly { readonly name: string; readonly state: string }[]
  /** Parts that do not fit each other, with the cure. */
  readonly skew: readonly { readonly message: string; readonly cure: string }[]
  /** Parts that could not be read. */
  readonly unknown: readonly string[]
}

export const clientVersion = (version: string): Versions['client'] => ({
  ...{ version, node: process.version, platform: `${process.platform}-${process.arch}` },
})

/** Shows the versions of this program and of the installation, and what does not fit. @throws KubeError. */
export async function showVersions(session: Session, places: Places): Promise<void> {
  const { api, call, progress, version } = session
  const [seen, reports] = await progress.wait('read the versions', () =>
    Promise.all([
      readVersions(session, places),
      listAll(api, nodeReports, {}, call).then(
        ({ objects }) => objects.map(parseReport),
        (error: unknown) => error,
      ),
    ]),
  )
  const found = versionsOf({ ...seen, version }, reports, kindsFindings(seen, await ownSchemas()))
  answer(session, 'Versions', found, () => render(found))
}

type Seen = Pick<Installation, 'kubernetes' | 'operator' | 'version'>

/** Pure. @param reports or the error of reading them */
export function versionsOf(
  { version, kubernetes, operator }: Seen,
  reports: readonly NodeReport[] | unknown,
  kinds: readonly Finding[],
): Versions {
  const image = operator.ok ? operator.value.spec?.template.spec?.containers[0]?.image : undefined
  const ofOperator = image === undefined ? undefined : (tagOf(image) ?? image)
  const agents = Array.isArray(reports) ? agentVersions(reports) : undefined
  return {
    client: clientVersion(version),
    kubernetes,
    ...(ofOperator !== undefined && { operator: ofOperator }),
    ...(agents !== undefined && { agents }),
    kinds: kinds.map(({ about, message }) => ({ name: about, state: message })),
    skew: [
      ...clientSkew(version, image),
      ...agentSkew(image, agents ?? []),
      ...kinds.flatMap(({ verdict, about, message, cure }) =>
        (verdict === 'broken' || verdict === 'note') && cure !== undefined
          ? [{ message: `${about}: ${message}`, cure }]
          : [],
      ),
    ],
    unknown: [
      ...(operator.ok ? [] : [`operator: ${whyNot(operator.error)}`]),
      ...(agents === undefined ? [`agents: ${whyNot(reports)}`] : []),
      ...kinds
        .filter(({ verdict }) => verdict === 'unknown')
        .map(({ about, message }) => `${about}: ${message}`),
    ],
  }
}

const whyNot = (error: unknown): string =>
  isKubeError(error, 'NotFound') ? 'not installed, or in another namespace' : messageOf(error)

function agentVersions(reports: readonly NodeReport[]): readonly AgentVersion[] {
  const byVersion = Map.groupBy(reports, ({ status }) => status?.version ?? 'unknown')
  return [...byVersion]
    .map(([version, of]) => ({ version, nodes: of.map(({ metadata }) => metadata.name).sort() }))
    .sort((a, b) => b.nodes.length - a.nodes.length || (a.version < b.version ? -1 : 1))
}

/** An image with a digest only says nothing about its version. */
function clientSkew(version: string, image: string | undefined): Versions['skew'] {
  const tag = image === undefined ? undefined : tagOf(image)
  return tag === undefined || tag === version
    ? []
    : [
        {
          message: `this program has version ${version}, the operator ${tag}`,
          cure: 'use the kubectl-understudy of the installed version',
        },
      ]
}

function agentSkew(image: string | undefined, agents: readonly AgentVersion[]): Versions['skew'] {
  const tag = image === undefined ? undefined : tagOf(image)
  const wanted = tag ?? agents[0]?.version
  return agents
    .filter(({ version }) => version !== wanted)
    .map(({ version, nodes }) => ({
      message: `the agents of ${some(nodes)} have version ${version}, ${tag === undefined ? 'most others' : 'the operator'} ${wanted}`,
      cure: 'apply deploy/ of one version as a whole; during an upgrade, wait for its rollout',
    }))
}

const mostNodes = 10
const some = (names: readonly string[]): string =>
  names.length > mostNodes
    ? `${names.slice(0, mostNodes).join(', ')} and ${names.length - mostNodes} more nodes`
    : names.join(', ')

function render({ client, kubernetes, operator, agents, kinds, skew, unknown }: Versions): string {
  const label = (text: string) => text.padEnd(12)
  return [
    `${label('client')}${client.version} (Node ${client.node}, ${client.platform})`,
    `${label('kubernetes')}${kubernetes}`,
    `${label('operator')}${operator ?? 'not known'}`,
    ...(agents === undefined
      ? [`${label('agents')}not known`]
      : agents.length === 0
        ? [`${label('agents')}none`]
        : agents.map(
            ({ version, nodes }, index) =>
              `${label(index === 0 ? 'agents' : '')}${version} on ${some(nodes)}`,
          )),
    ...kinds.map(({ name, state }, index) => `${label(index === 0 ? 'kinds' : '')}${name}: ${state}`),
    ...unknown.map(each => `? ${each}`),
    ...skew.flatMap(({ message, cure }) => [`✗ ${message}`, `  → ${cure}`]),
  ].join('\n')
}
