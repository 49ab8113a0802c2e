import { backupPodSets } from '../../api/backuppodset.ts'
import { keptBy } from '../../api/kept-by.ts'
import { type NodeReport, nodeReports, retireRequested } from '../../api/node-report.ts'
import { stageLabel } from '../../api/pod-contract.ts'
import { isKubeError } from '../../kube/errors.ts'
import { listAll } from '../../kube/list-all.ts'
import { nodes } from '../../kube/resources.ts'
import { CliError, exitCodes, isUnknownKind } from '../failure.ts'
import { answer } from '../output/answer.ts'
import type { Session } from '../session.ts'

export interface UninstallOptions {
  /** Also while sets keep memory: their memory is discarded, and their primaries continue without protection. */
  readonly allowStateLoss?: boolean
  /** Seconds. */
  readonly timeout: number
}

const lookMs = 1_000

/**
 * Makes every agent leave its node: no process, mount, file, key or cgroup of ours stays there, and the operator
 * removes the label. After that the objects of the installation can be deleted. After an interruption, run it again.
 *
 * @throws CliError with exit code 3 before any change, if memory would be lost, and 4 with the list of remaining work.
 */
export async function uninstall(session: Session, options: UninstallOptions): Promise<void> {
  const { clock, progress, signal } = session
  await mayBeDone(session, options)
  const until = clock.monotonic() + options.timeout * 1000
  const names = await progress.step('the agents leave their nodes', async step => {
    for (;;) {
      const reports = await reportsOf(session)
      await Promise.all(reports.filter(report => !isAsked(report)).map(report => ask(session, report)))
      const left = [...reports.flatMap(waitsFor), ...(await labelled(session))]
      const nodesLeft = new Set(left.map(({ node }) => node)).size
      step.of(Math.max(reports.length, nodesLeft) - nodesLeft, Math.max(reports.length, nodesLeft))
      const lines = left.map(({ node, why }) => `${node}: ${why}`)
      step.detail(lines[0] ?? '')
      if (left.length === 0) return reports.map(({ metadata }) => metadata.name)
      if (clock.monotonic() > until) throw late(lines)
      await clock.sleep(lookMs, signal)
    }
  })
  answer(session, 'Uninstallation', { retired: names }, () => doneLine(names.length))
}

const late = (details: readonly string[]) =>
  new CliError('the agents have not left all nodes within --timeout', {
    details,
    advice:
      'run it again when their agents work; if a node is gone for good, delete its report (kubectl delete nodereport NAME)',
    exitCode: exitCodes.late,
  })

const doneLine = (count: number) =>
  `nothing of Understudy is left on ${count} ${count === 1 ? 'node' : 'nodes'}; now run: kubectl delete -k deploy/`

/** @throws CliError that tells the user the first step to take. */
async function mayBeDone({ api, call }: Session, { allowStateLoss }: UninstallOptions): Promise<void> {
  if (allowStateLoss === true) return
  const { objects } = await listAll(api, backupPodSets, {}, call).catch((error: unknown) => {
    // The kind is deleted already: the removal began at the other end.
    if (isUnknownKind(error)) return { objects: [] }
    throw error
  })
  const keeping = objects.filter(set => keptBy(set) === 'memory')
  if (keeping.length === 0) return
  const names = keeping.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
  const named = names.slice(0, 10).join(', ')
  const more = names.length > 10 ? ` and ${names.length - 10} more` : ''
  throw new CliError(`the memory of ${names.length} sets is kept: ${named}${more}`, {
    advice:
      'delete them first (kubectl delete mpod,bps), or use --allow-state-loss to lose their saved memory',
    exitCode: exitCodes.refused,
  })
}

const reportsOf = async ({ api, call }: Session): Promise<readonly NodeReport[]> =>
  (await listAll(api, nodeReports, {}, call)).objects

const isAsked = ({ metadata }: NodeReport) => metadata.annotations?.[retireRequested] !== undefined

async function ask({ api, call, clock }: Session, { metadata: { name, uid } }: NodeReport): Promise<void> {
  const word = new Date(clock.now()).toISOString()
  const body = { metadata: { uid, annotations: { [retireRequested]: word } } }
  try {
    await api.patch(nodeReports, { name }, { type: 'merge', body }, call)
  } catch (error) {
    // Deleted or recreated: the next round finds its new state.
    if (!isKubeError(error, 'NotFound', 'Conflict')) throw error
  }
}

/** A reason why the removal is not complete. */
interface Left {
  readonly node: string
  readonly why: string
}

function waitsFor({ metadata: { name }, status }: NodeReport): readonly Left[] {
  if (status?.retired === true) return []
  const check = status?.checks.find(it => it.name === 'retired')
  const since = status === undefined ? '' : ` (last heard of ${status.updatedAt})`
  return [{ node: name, why: check?.message ?? `its agent has not answered yet${since}` }]
}

async function labelled({ api, call }: Session): Promise<readonly Left[]> {
  const { objects } = await listAll(api, nodes, { labelSelector: stageLabel }, call)
  return objects.map(({ metadata }) => ({
    node: metadata.name,
    why: `the operator has not removed the label ${stageLabel} yet`,
  }))
}
