import type { NodeReport } from '../../api/node-report.ts'
import { stageLabel, stageReady } from '../../api/pod-contract.ts'
import type { Node } from '../../kube/resources.ts'
import { about, type Finding } from './finding.ts'
import type { Installation } from './installation.ts'
import { platformOf } from './platforms.ts'
import { unreadable } from './unreadable.ts'

const { ok, broken, note, unproven } = about('nodes')

type Seen = Pick<Installation, 'nodes' | 'reports' | 'agents' | 'identity'>

/** A working agent writes every 10 s; the clocks of nodes and servers differ by some seconds. */
const silentMs = 60_000

/** Findings about nodes: every check, silent agents, wrong labels, and configurations that are not proven to work. */
export function nodesFindings(seen: Seen): readonly Finding[] {
  const { nodes, reports, agents, identity } = seen
  if (!reports.ok) return [unreadable('nodes', 'reports', reports.error)]
  const now = identity.ok ? identity.value.now : Date.now()
  const known = nodes.ok ? new Map(nodes.value.map(node => [node.metadata.name, node])) : undefined
  const reported = new Set(reports.value.map(({ metadata }) => metadata.name))
  // Agents tolerate every taint: a node without a report lacks its agent, unless no agents are installed at all.
  const silent = agents.ok
    ? [...(known?.values() ?? [])].filter(({ metadata }) => !reported.has(metadata.name)).map(silentNode)
    : []
  const findings = [...reports.value]
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .flatMap(report => ofReport(report, known, now))
  return [
    ...(known === undefined && !nodes.ok ? [unreadable('nodes', 'nodes', nodes.error)] : []),
    ...silent,
    ...findings,
    ...platformNotes([...(known?.values() ?? [])], [...silent, ...findings]),
  ]
}

function silentNode(node: Node): Finding {
  const { name, labels } = node.metadata
  if ((labels?.['kubernetes.io/os'] ?? 'linux') !== 'linux')
    return note(name, 'not a Linux node: no agent runs there, and it keeps no memory')
  const platform = platformOf(node)
  if (platform?.agents === false)
    return note(name, `a node of ${platform.name}: no agent can run there, and it keeps no memory`)
  return broken(
    name,
    'no agent reports from this node: it keeps no memory',
    'check its pod of the DaemonSet understudy-agent; image and pod security are the usual causes',
  )
}

/** Returns one note for each known refusal of those kinds of nodes of which some keep no memory: it may explain why. */
function platformNotes(nodes: readonly Node[], findings: readonly Finding[]): Finding[] {
  const isWell = ({ metadata }: Node) =>
    findings.every(
      ({ about, verdict }) =>
        about.split(' ')[0] !== metadata.name || verdict === 'ok' || verdict === 'unproven',
    )
  const byPlatform = Map.groupBy(
    nodes.filter(each => !isWell(each)),
    platformOf,
  )
  return [...byPlatform].flatMap(([platform, { length }]) =>
    (platform?.refuses ?? [])
      .filter(({ aside }) => aside !== true)
      .map(({ what, cure }) =>
        note(
          platform?.name ?? '',
          `${length} ${length === 1 ? 'node is' : 'nodes are'} of this kind, which may refuse ${what}`,
          cure,
        ),
      ),
  )
}

function ofReport(
  { metadata: { name }, status }: NodeReport,
  known: ReadonlyMap<string, Node> | undefined,
  now: number,
): Finding[] {
  const node = known?.get(name)
  if (known !== undefined && node === undefined)
    return [
      note(name, 'a report of a node that no longer exists', `run \`kubectl delete nodereport ${name}\``),
    ]
  if (status === undefined)
    return [
      broken(
        name,
        'its report is empty',
        'read the log of its agent: it has no right to write nodereports/status',
      ),
    ]
  const findings = status.checks.map(({ name: check, ok: holds, message, cure }) =>
    holds
      ? ok(`${name} ${check}`, message)
      : broken(`${name} ${check}`, message, cure ?? 'read the log of its agent'),
  )
  const silentFor = now - Date.parse(status.updatedAt)
  if (silentFor > silentMs)
    findings.push(
      broken(
        `${name} agent`,
        `no report since ${status.updatedAt}`,
        'check its pod of the DaemonSet understudy-agent, and the clock of the node',
      ),
    )
  const labelled = node?.metadata.labels?.[stageLabel] === stageReady
  const isReady = status.ready && silentFor <= silentMs
  if (node !== undefined && isReady && !labelled)
    findings.push(
      broken(
        `${name} label`,
        `it can keep memory, but lacks the label ${stageLabel}=${stageReady}: no understudy is scheduled there`,
        'no action needed for some seconds; after that, read the log of the operator, which sets it',
      ),
    )
  if (node !== undefined && !isReady && labelled)
    findings.push(
      note(
        `${name} label`,
        `it still has ${stageLabel}=${stageReady}, which the operator removes within 30 s`,
      ),
    )
  return [...findings, ...unprovenOn(name, status, node)]
}

/** Reports configurations that this project could not try, until the node itself has shown that they work. */
function unprovenOn(
  name: string,
  { checks, architecture, slots }: NonNullable<NodeReport['status']>,
  node: Node | undefined,
): Finding[] {
  const canary = checks.some(check => check.name === 'canary' && check.ok)
  const cgroups = checks.find(check => check.name === 'cgroups')?.message
  const runtime = node?.status?.nodeInfo?.containerRuntimeVersion
  const untried = [
    ...(!canary && cgroups === 'v2' ? ['cgroup v2'] : []),
    ...(!canary && architecture === 'aarch64' ? ['aarch64 processors'] : []),
  ].map(what =>
    unproven(
      `${name} ${what}`,
      `${what}: implemented, but never tested by this project, and the canary of this node has not passed`,
      'wait until the canary passes: that proves it',
    ),
  )
  const kept = slots.some(({ generation }) => generation > 0)
  if (runtime !== undefined && !runtime.startsWith('containerd://') && !kept)
    untried.push(
      unproven(
        `${name} runtime`,
        `${runtime}: implemented, but never tested by this project; the canary runs without a runtime`,
        'wait until this node keeps a generation of a primary: that proves it',
      ),
    )
  return untried
}
