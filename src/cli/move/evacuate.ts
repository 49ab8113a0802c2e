import { backupPodSets } from '../../api/backuppodset.ts'
import { isFinished, type Migration, migrations, outcomeOf } from '../../api/migration.ts'
import { isKubeError } from '../../kube/errors.ts'
import { listAll } from '../../kube/list-all.ts'
import { nodes, type Pod } from '../../kube/resources.ts'
import { CliError, exitCodes } from '../failure.ts'
import { noSuchNode, primariesOn } from '../nodes.ts'
import { answer } from '../output/answer.ts'
import type { Session } from '../session.ts'
import { lastOf, leaves } from './leaving.ts'
import { movedLine } from './move.ts'

export interface EvacuateOptions {
  /** Seconds. */
  readonly timeout: number
}

/** How often to look at the primaries of the node, ms. */
const pollMs = 1_000

/** One primary that was on the node, and its last Migration. */
interface Evacuated {
  readonly pod: string
  readonly migration: Migration | undefined
  /** Its Migration has not ended, or it is still on the node. */
  readonly isThere: boolean
}

/**
 * Cordons a node, and waits until every primary whose memory is kept has left it: the operator moves them away from each cordoned
 * node. Primaries without memory stay, and so do those of sets that let them be evicted: `kubectl drain` replaces them like any pod.
 * The operator continues when this command ends, until the node is uncordoned.
 *
 * @throws CliError with exit code 4 if a primary is still there in the end; KubeError.
 */
export async function evacuate(session: Session, node: string, { timeout }: EvacuateOptions): Promise<void> {
  const { progress, clock, signal } = session
  await cordon(session, node)
  const end = clock.monotonic() + timeout * 1000
  const seen = new Map<string, Pod>()
  const all = await progress.step(`evacuate node ${node}`, async step => {
    for (;;) {
      const now = await look(session, node, seen)
      const left = now.filter(({ isThere }) => isThere)
      step.of(now.length - left.length, now.length)
      step.detail(left.length === 0 ? '' : `${left.length} of ${now.length} left; ${wordOf(left[0])}`)
      if (left.length === 0 || clock.monotonic() >= end) return now
      await clock.sleep(pollMs, signal)
    }
  })
  const stayed = all.filter(({ isThere }) => isThere)
  answer(session, 'Evacuation', { node, primaries: all }, () =>
    [
      ...all.map(lineOf),
      `${all.length - stayed.length} of ${all.length} primaries with memory have left node ${node}; it is cordoned`,
    ].join('\n'),
  )
  if (stayed.length > 0)
    throw new CliError(`${stayed.length} primaries have not left node ${node} within --timeout`, {
      advice:
        'remove the reason; the operator tries again until the node is uncordoned, and "kubectl delete pod" gives a slot to another pod without waiting',
      exitCode: exitCodes.late,
    })
}

/** Returns all primaries that have been seen on the node, with their Migrations. */
async function look(session: Session, node: string, seen: Map<string, Pod>): Promise<readonly Evacuated[]> {
  const { api, call } = session
  const [pods, sets, moves] = await Promise.all([
    primariesOn(session, node),
    listAll(api, backupPodSets, {}, call),
    listAll(api, migrations, {}, call),
  ])
  const there = new Set<string>()
  for (const pod of pods) {
    if (!leaves(pod, sets.objects)) continue
    seen.set(pod.metadata.uid, pod)
    there.add(pod.metadata.uid)
  }
  return [...seen.values()].map(({ metadata: { namespace = '', name, uid } }) => {
    const migration = lastOf(moves.objects, namespace, uid)
    const isMoving = migration !== undefined && !isFinished(migration)
    return { pod: `${namespace}/${name}`, migration, isThere: there.has(uid) || isMoving }
  })
}

function wordOf(about: Evacuated | undefined): string {
  if (about === undefined) return ''
  if (about.migration === undefined) return `${about.pod}: the operator has not made its Migration yet`
  const word = outcomeOf(about.migration)
  return `${about.pod}: ${[about.migration.status?.phase ?? 'Pending', word?.reason, word?.message].filter(Boolean).join(': ')}`
}

function lineOf(about: Evacuated): string {
  if (about.isThere) return `${wordOf(about)}: stays`
  return about.migration?.status?.phase === 'Succeeded'
    ? `${about.pod}: ${movedLine(about.migration)}`
    : `${about.pod}: is gone, and not by a Migration`
}

async function cordon({ api, call }: Session, name: string): Promise<void> {
  const body = { spec: { unschedulable: true } }
  await api.patch(nodes, { name }, { type: 'merge', body }, call).catch((error: unknown) => {
    if (isKubeError(error, 'NotFound')) throw noSuchNode(name)
    throw error
  })
}
