import { drainedNodeOf } from '../../api/drain.ts'
import { drainOf } from '../../api/leaving.ts'
import { isFinished, type Migration, outcomeOf } from '../../api/migration.ts'
import { isMigrationReason, type MigrationReason, waitsForUser } from '../../api/migration-reasons.ts'
import { keyOf } from '../../kube/object.ts'
import type { Node } from '../../kube/resources.ts'
import { lastOf, leaves } from '../move/leaving.ts'
import { about, type Finding, listed } from './finding.ts'
import type { Installation } from './installation.ts'
import { applying, type Installer, installerOf } from './installer.ts'
import { unseenMs } from './seen.ts'
import { unreadableKind } from './unreadable.ts'

const { ok, broken, note } = about('moves')

type Seen = Pick<Installation, 'migrations' | 'nodes' | 'primaries' | 'sets' | 'identity' | 'operator'>

const waitForOthers = 'no action needed: it begins when others have ended; `priority` decides who comes first'

/** The cures for a Migration that waits with the reason, or has failed with it; undefined: a user can do nothing. */
const cures: Readonly<Record<MigrationReason, string | undefined>> = {
  SetBusy: waitForOthers,
  NodeBudget: waitForOthers,
  NamespaceBudget: waitForOthers,
  TotalBudget: waitForOthers,
  Begins: undefined,
  TargetComing: undefined,
  NoNode:
    'uncordon a node with an agent, add one, or choose other labels for addedNodeSelector; `kubectl understudy doctor` says which nodes can keep memory',
  Unschedulable: 'make room for a pod of this template, add a node, or let the template run on more nodes',
  SetPaused: 'set spec.paused of its BackupPodSet to false',
  SetSuspended: 'set spec.suspend of its BackupPodSet, or of its MigratingPod, to false',
  NotSaved: 'remove what the message names: a primary that cannot be saved cannot move with its memory',
  AgentSilent: 'see the log of the agent on the node of the primary',
  MemoryComing: undefined,
  DowntimeTooLong: 'create another Migration with a larger maxDowntime, or without it',
  Stopping: undefined,
  Switching: undefined,
  SourceNotFound: 'create another Migration, which names a primary: `kubectl understudy status` lists them',
  SourceReplaced: 'create another Migration, for the pod that has the slot now',
  NotAPrimary: 'create another Migration, which names the primary of the slot',
  NoMemory: 'follow the condition CheckpointReady of the BackupPodSet',
  InvalidValue: 'create another Migration, changed as the message says',
  TargetFailed: 'remove what the message names, and create another Migration',
  SourceLost: undefined,
  SourceGone: undefined,
  NotServing: 'see the condition CheckpointReady of the BackupPodSet, and `kubectl describe bps`',
  MovedElsewhere: 'create another Migration',
  Moved: undefined,
}

const cureFor = (reason: string): string | undefined =>
  isMigrationReason(reason) ? cures[reason] : undefined

/** Findings about Migrations, and about nodes that are drained and still have primaries. */
export function movesFindings(seen: Seen): readonly Finding[] {
  const { migrations, identity } = seen
  if (!migrations.ok) return unreadableKind('moves', 'migrations', migrations.error)
  const now = identity.ok ? identity.value.now : Date.now()
  const installer = installerOf(seen)
  const open = migrations.value.filter(each => !isFinished(each)).map(each => ofOpen(each, now, installer))
  const failed = lastFailures(migrations.value).map(ofFailed)
  const drains = drainsIn(seen, migrations.value)
  const found = [...drains, ...listed(open, 'moves'), ...listed(failed, 'moves')]
  return found.length > 0 ? found : [ok('migrations', 'no pod moves, and the last moves have succeeded')]
}

function ofOpen(migration: Migration, now: number, installer: Installer): Finding {
  const { metadata, status = {} } = migration
  const key = keyOf(migration)
  const word = outcomeOf(migration)
  const age = now - Date.parse(metadata.creationTimestamp ?? '')
  if (word === undefined)
    return age < unseenMs
      ? note(key, 'is new: no operator has seen it yet')
      : broken(
          key,
          'no operator has seen it: no pod moves',
          `see that an operator of this version leads, and may read and write Migrations: run ${applying('deploy/', installer)}`,
        )
  const text = `${status.phase ?? 'Pending'}: ${word.reason}: ${word.message}`
  return waitsForUser(migration)
    ? broken(key, text, cureFor(word.reason) ?? 'do as the message says')
    : note(key, text, cureFor(word.reason))
}

/** A later Migration of the same pod says more than an earlier one; one that follows by itself says enough. */
function lastFailures(all: readonly Migration[]): readonly Migration[] {
  const sourceOf = ({ metadata, spec }: Migration) => `${metadata.namespace}/${spec.source.name}`
  return [...Map.groupBy(all, sourceOf).values()].flatMap(ofPod => {
    if (ofPod.some(each => !isFinished(each))) return []
    const created = ({ metadata }: Migration) => metadata.creationTimestamp ?? ''
    const [last] = [...ofPod].sort((a, b) => (created(a) < created(b) ? 1 : -1))
    return last?.status?.phase === 'Failed' ? [last] : []
  })
}

function ofFailed(migration: Migration): Finding {
  const { reason = 'Unknown', message = '' } = outcomeOf(migration) ?? {}
  return note(keyOf(migration), `failed: ${reason}: ${message}`, cureFor(reason))
}

/** A finding for each drained node that still has primaries which are to move. */
function drainsIn({ nodes, primaries, sets }: Seen, all: readonly Migration[]): Finding[] {
  if (!nodes.ok || !primaries.ok || !sets.ok) return []
  return nodes.value.flatMap(node => {
    const why = drainOf(node)
    if (why === undefined) return []
    const its = primaries.value.filter(
      pod => pod.spec?.nodeName === node.metadata.name && leaves(pod, sets.value),
    )
    return its.length === 0
      ? []
      : [
          ofDrain(
            node,
            why,
            its.map(pod => [keyOf(pod), lastIn(all, pod)] as const),
          ),
        ]
  })
}

const lastIn = (all: readonly Migration[], { metadata }: { metadata: { namespace?: string; uid: string } }) =>
  lastOf(all, metadata.namespace ?? '', metadata.uid)

function ofDrain(
  { metadata: { name } }: Node,
  why: string,
  primaries: readonly (readonly [string, Migration | undefined])[],
): Finding {
  const stuck = primaries.filter(
    ([, migration]) =>
      migration === undefined ||
      waitsForUser(migration) ||
      (migration.status?.phase === 'Failed' && drainedNodeOf(migration) !== undefined),
  )
  const what = `drain of ${name}`
  const count = `${primaries.length} primaries with memory have not left it (${why})`
  const [first] = stuck
  if (first === undefined) return note(what, `${count}; they move`)
  const [pod, migration] = first
  const word = migration && outcomeOf(migration)
  return broken(
    what,
    `${count}; ${stuck.length} of them wait. ${pod}: ${
      word === undefined ? 'it has no Migration' : `${word.reason}: ${word.message}`
    }`,
    `${(word && cureFor(word.reason)) ?? 'see that an operator leads'}. If the node has to go now, delete the pod: its successor continues from the last saved state. To keep the primaries, run \`kubectl uncordon ${name}\``,
  )
}
