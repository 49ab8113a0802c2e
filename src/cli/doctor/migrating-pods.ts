import type { MigratingPod, MigratingPodStatus } from '../../api/migrating-pod.ts'
import { conditionTypes } from '../../api/reasons.ts'
import type { Condition } from '../../kube/conditions.ts'
import { keyOf } from '../../kube/object.ts'
import { migratingPodCures } from '../cures.ts'
import { about, type Finding, listed } from './finding.ts'
import type { Installation } from './installation.ts'
import { applying, type Installer, installerOf } from './installer.ts'
import { unseenMs } from './seen.ts'
import { unreadableKind } from './unreadable.ts'

const { ok, broken, note } = about('moves')

type Seen = Pick<Installation, 'migratingPods' | 'identity' | 'operator'>

/** Findings about MigratingPods. Problems with the memory of one are findings about its set. */
export function migratingPodsFindings({ migratingPods, identity, operator }: Seen): readonly Finding[] {
  if (!migratingPods.ok) return unreadableKind('moves', 'migratingpods', migratingPods.error)
  const now = identity.ok ? identity.value.now : Date.now()
  const installer = installerOf({ operator })
  return listed(
    migratingPods.value.map(each => ofOne(each, now, installer)),
    'moves',
  )
}

function ofOne(object: MigratingPod, now: number, installer: Installer): Finding {
  const { metadata, status = {} } = object
  const what = `${keyOf(object)} (MigratingPod)`
  if (status.state === undefined)
    return now - Date.parse(metadata.creationTimestamp ?? '') < unseenMs
      ? note(what, 'is new: no operator has seen it yet')
      : broken(
          what,
          'no operator has seen it: it has no pod',
          `see that an operator of this version leads, and may read and write MigratingPods: run ${applying('deploy/', installer)}`,
        )
  const { reason, message } = conditionOf(status, conditionTypes.ready)
  const suspended = conditionOf(status, conditionTypes.suspended)
  switch (status.state) {
    case 'Invalid':
      return broken(
        what,
        `Invalid: ${reason}: ${message}`,
        migratingPodCures[reason] ?? 'do as the message says',
      )
    case 'MigrationPending':
    case 'Migrating':
      return note(
        what,
        `${status.state}${status.migration === undefined ? '' : `: Migration ${status.migration}`}; its last pod is ${status.activePod ?? '-'}`,
      )
    case 'Creating':
      return note(what, `Creating: ${reason}: ${message}`)
    case 'Completed':
      return ok(what, `Completed: ${message}`)
    case 'Suspending':
    case 'Suspended':
      return note(what, `${status.state}: ${suspended.reason}: ${suspended.message}`)
    case 'Running':
      return ok(what, `${status.activePod} runs on node ${status.node}`)
    default:
      return status.state satisfies never
  }
}

const conditionOf = (
  { conditions }: MigratingPodStatus,
  type: string,
): Pick<Condition, 'reason' | 'message'> =>
  conditions?.find(each => each.type === type) ?? { reason: 'Unknown', message: '' }
