import { type BackupPodSet, backupPodSets } from '../api/backuppodset.ts'
import { type MigratingPod, migratingPods } from '../api/migrating-pod.ts'
import { conditionTypes } from '../api/reasons.ts'
import { isKubeError } from '../kube/errors.ts'
import { listAll } from '../kube/list-all.ts'
import { migratingPodCures } from './cures.ts'
import { CliError, isUnknownKind } from './failure.ts'
import type { Session } from './session.ts'

/** @throws CliError that suggests the set that was probably meant; KubeError. */
export async function findSet(session: Session, name: string): Promise<BackupPodSet> {
  const { api, namespace, call } = session
  try {
    return await api.get(backupPodSets, { namespace, name }, call)
  } catch (error) {
    if (!isKubeError(error, 'NotFound') || isUnknownKind(error)) throw error
    const moving = await api.get(migratingPods, { namespace, name }, call).catch(() => undefined)
    if (moving !== undefined) throw withoutSet(moving)
    throw new CliError(`there is no BackupPodSet ${name} in namespace ${namespace}`, {
      advice: suggestion(name, namespace, await everySet(session)),
    })
  }
}

/** The operator makes the set of a MigratingPod, and may not have been able to. */
function withoutSet({ metadata: { name }, status }: MigratingPod): CliError {
  const ready = status?.conditions?.find(({ type }) => type === conditionTypes.ready)
  const state = status?.state ?? 'no operator has seen it'
  return new CliError(
    `the MigratingPod ${name} has no BackupPodSet: ${state}${ready === undefined ? '' : `: ${ready.reason}: ${ready.message}`}`,
    {
      advice:
        migratingPodCures[ready?.reason ?? ''] ?? 'see that an operator leads: `kubectl understudy doctor`',
    },
  )
}

interface Named {
  readonly namespace: string
  readonly name: string
}

/** Sets of all namespaces, or of the session's if the rights end there. */
async function everySet({ api, namespace, call }: Session): Promise<readonly Named[]> {
  const list = (scope: object) => listAll(api, backupPodSets, scope, call)
  const { objects } = await list({}).catch((error: unknown) => {
    if (!isKubeError(error, 'Forbidden')) throw error
    return list({ namespace })
  })
  return objects.map(({ metadata }) => ({ namespace: metadata.namespace ?? '', name: metadata.name }))
}

/** Returns what the user could try instead. */
export function suggestion(name: string, namespace: string, sets: readonly Named[]): string {
  const elsewhere = sets.filter(set => set.name === name && set.namespace !== namespace)
  if (elsewhere.length > 0)
    return `use -n ${elsewhere.map(it => it.namespace).join(' or -n ')}: it is in another namespace`
  const here = sets.filter(set => set.namespace === namespace).map(set => set.name)
  if (here.length === 0)
    return sets.length === 0
      ? 'create one first, for example from samples/: there are no sets yet'
      : `list all sets with \`kubectl understudy status -A\`: this namespace has none`
  const near = here.filter(other => distance(name, other) <= Math.max(2, name.length / 3))
  return near.length > 0
    ? `did you mean ${near.join(' or ')}?`
    : `choose one of: ${here.slice(0, 10).join(', ')}`
}

/** Number of letters to change, add or remove (Levenshtein). */
export function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1]
    for (const [j, other] of [...b].entries())
      next.push(
        Math.min((row[j] ?? 0) + (letter === other ? 0 : 1), (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1),
      )
    row = next
  }
  return row[b.length] ?? 0
}
