import type { BackupPodSet } from '../../api/backuppodset.ts'
import { keptBy } from '../../api/kept-by.ts'
import { parseSet } from '../../api/parse.ts'
import { conditionTypes, reasons } from '../../api/reasons.ts'
import { keyOf } from '../../kube/object.ts'
import { cureOf, isAsItShouldBe } from '../cures.ts'
import { about, type Finding } from './finding.ts'
import type { Installation } from './installation.ts'
import { unreadable } from './unreadable.ts'

const { ok, broken, note } = about('sets')

/**
 * Findings about sets: conditions that are not as they should be, and sets without memory that could or could not keep
 * it.
 */
export function setsFindings({ sets }: Pick<Installation, 'sets'>): readonly Finding[] {
  if (!sets.ok) return [unreadable('sets', 'sets', sets.error)]
  if (sets.value.length === 0) return [note('sets', 'there are no sets')]
  return [...sets.value].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)).flatMap(ofSet)
}

function ofSet(set: BackupPodSet): Finding[] {
  const key = keyOf(set)
  const parsed = parseSet(set)
  if (!parsed.ok)
    return [broken(key, `refused (${parsed.code}): ${parsed.message}`, 'change the set as the message says')]
  const conditions = set.status?.conditions ?? []
  const troubles = conditions
    .filter(condition => !isAsItShouldBe(condition))
    .map(condition => {
      const { type, reason, message } = condition
      const what = `${key} ${type}`
      const cure = cureOf(condition)
      const text = `${reason}${message === '' ? '' : `: ${message}`}`
      // In progress, or intended: nothing is broken.
      const isMeant = reason === reasons.suspended || reason === reasons.completed
      if (type === 'Progressing' || type === 'Paused' || isMeant) return note(what, text, cure)
      return broken(what, text, cure ?? 'do as the message says')
    })
  // As it should be, but still worth knowing.
  const caveats = conditions
    .filter(
      ({ type, status, reason }) =>
        (type === conditionTypes.checkpointReady && status === 'True' && reason !== reasons.allProtected) ||
        (type === conditionTypes.suspended && reason !== reasons.suspended),
    )
    .map(it => note(`${key} ${it.type}`, `${it.reason}: ${it.message}`, cureOf(it)))
  const memory = keptBy(set) === 'nothing' ? [withoutMemory(set, key)] : []
  return troubles.length > 0
    ? [...troubles, ...caveats, ...memory]
    : [ok(key, 'all conditions are as expected'), ...caveats, ...memory]
}

/** Tries this template with memory, and reports why it would be refused. */
function withoutMemory(set: BackupPodSet, key: string): Finding {
  const { updateStrategy: _, ...spec } = set.spec
  const tried = parseSet({
    ...set,
    spec: { ...spec, checkpoint: set.spec.checkpoint ?? {}, hotBackup: { mode: 'Frozen' } },
  })
  return tried.ok
    ? note(`${key} memory`, 'not kept, but it could be: add `checkpoint: {}` to its spec')
    : note(`${key} memory`, `not kept, and its template does not allow it: ${tried.message}`)
}
