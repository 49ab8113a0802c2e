import { type BackupPodSet, defaults } from '../../api/backuppodset.ts'
import { keptBy } from '../../api/kept-by.ts'
import type { SlotStatus } from '../../api/slot-status.ts'
import { CliError } from '../failure.ts'

/** Returns the slots to save: the given one, or all. @throws CliError when there is nothing to save. */
export function slotsOf(set: BackupPodSet, wanted: number | undefined): readonly SlotStatus[] {
  const { name } = set.metadata
  const kept = keptBy(set)
  if (kept === 'state')
    throw new CliError(
      `the operator pulls the state of ${name} (checkpoint.source: http); agents do not save it`,
      {
        advice: `no action needed: it is pulled every ${set.spec.checkpoint?.interval ?? defaults.checkpoint.interval}; \`kubectl understudy status ${name}\` shows its age`,
      },
    )
  if (kept === 'nothing')
    throw new CliError(`${name} keeps no memory, so there is nothing to save`, {
      advice:
        'add `checkpoint: {}` to its spec; `kubectl understudy doctor` says whether its template allows it',
    })
  if (wanted !== undefined) return [slotOf(set, wanted)]
  const slots = set.status?.slots ?? []
  if (slots.length === 0)
    throw new CliError(`${name} has no primaries yet`, {
      advice: `wait for them with \`kubectl understudy status ${name} -w\``,
    })
  return slots
}

/** Returns the slot with this number, or with this primary. @throws CliError that lists the existing slots. */
export function slotHolding(set: BackupPodSet, place: string): SlotStatus {
  const found = set.status?.slots?.find(({ pod }) => pod === place)
  if (found !== undefined) return found
  if (/^\d+$/.test(place)) return slotOf(set, Number(place))
  throw new CliError(`${set.metadata.name} has no primary ${place}`, {
    advice: `name the number of a slot, or a primary of \`kubectl understudy status ${set.metadata.name}\``,
  })
}

/** @throws CliError that lists the existing slots. */
export function slotOf(set: BackupPodSet, wanted: number): SlotStatus {
  const slots = set.status?.slots ?? []
  const found = slots.find(({ slot }) => slot === wanted)
  if (found !== undefined) return found
  throw new CliError(`${set.metadata.name} has no slot ${wanted}`, {
    advice:
      slots.length === 0
        ? 'wait until it has primaries'
        : `choose one of: ${slots.map(({ slot }) => slot).join(', ')}`,
  })
}
