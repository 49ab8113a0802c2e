/** The pictures of sets: the facts of `status`, cut down to what the page shows. */
import type { BackupPodSet } from '../../api/backuppodset.ts'
import { annotations, labels } from '../../api/labels.ts'
import type { Migration } from '../../api/migration.ts'
import { slotLeaseName } from '../../api/numbered-slot.ts'
import type { Pod } from '../../kube/resources.ts'
import { type SetFacts, type SlotFacts, setsFacts } from '../status/facts.ts'
import { indexOf, type ReportIndex } from '../status/report-index.ts'
import { followersIn } from '../status/successors.ts'
import { oneLine, printable } from '../terminal.ts'
import type { World } from '../world.ts'
import { happeningsOf } from './happenings.ts'
import type { SetPicture, SlotPicture } from './wire.ts'

const keyOf = ({ namespace = '', name }: { readonly namespace?: string; readonly name: string }): string =>
  `${namespace}/${name}`

/** Returns a picture of each set, sorted by namespace and name. */
export function picturesOf(world: World): readonly SetPicture[] {
  const sets = new Map(world.sets.map(set => [keyOf(set.metadata), set]))
  const pods = Map.groupBy(world.pods, ({ metadata }) =>
    keyOf({ namespace: metadata.namespace ?? '', name: metadata.labels?.[labels.set] ?? '' }),
  )
  const moves = Map.groupBy(world.migrations ?? [], ({ metadata, status }) =>
    keyOf({ namespace: metadata.namespace ?? '', name: status?.source?.set ?? '' }),
  )
  const reports = world.reports && indexOf(world.reports)
  return setsFacts(world).flatMap(facts => {
    const key = keyOf(facts)
    const set = sets.get(key)
    if (set === undefined) return []
    return [plain(pictureOf(set, facts, pods.get(key) ?? [], moves.get(key) ?? [], reports))]
  })
}

/** Every hot backup may follow every primary: with all of them, a set of 200 slots would have 40,000 names. */
const mostFollowers = 3

function pictureOf(
  set: BackupPodSet,
  facts: SetFacts,
  pods: readonly Pod[],
  migrations: readonly Migration[],
  reports: ReportIndex | undefined,
): SetPicture {
  const { namespace, name, ready, primaries, hotBackups, coldBackups, memory, slots, troubles } = facts
  const followersOf = followersIn(set, pods)
  const slotPicture = (slot: SlotFacts): SlotPicture => {
    const ofSlot = reports?.slot(namespace, slotLeaseName(name, slot.slot))
    const followers = followersOf(slot, ofSlot)
    const savedAt = Date.parse(slot.savedAt ?? '')
    return {
      ...{ slot: slot.slot, pod: slot.pod, ready: slot.ready, epoch: slot.epoch },
      ...(slot.node === undefined ? {} : { node: slot.node }),
      ...(memory === undefined ? {} : { protection: slot.protection ?? 'None' }),
      ...(slot.generation === undefined ? {} : { generation: slot.generation }),
      ...(Number.isNaN(savedAt) ? {} : { savedAt }),
      followers: followers.slice(0, mostFollowers),
      ...(followers.length > mostFollowers ? { otherFollowers: followers.length - mostFollowers } : {}),
    }
  }
  return {
    ...{ key: keyOf(facts), namespace, name, ready },
    primaries: { wanted: primaries.wanted, inPlace: primaries.inPlace },
    hotBackups: { wanted: hotBackups.wanted, inPlace: hotBackups.inPlace },
    coldBackups: { wanted: coldBackups.wanted, inPlace: coldBackups.inPlace },
    ...(memory === undefined ? {} : { memory: { mode: memory.mode, interval: memory.interval } }),
    slots: slots.map(slotPicture),
    troubles: troubles.map(({ condition, status, reason, message, cure }) => ({
      text: `${condition} is ${status} (${reason})${message === '' ? '' : `: ${message}`}`,
      ...(cure === undefined ? {} : { cure }),
    })),
    timeline: happeningsOf(set, migrations),
    drill: set.metadata.annotations?.[annotations.drill] === 'allowed',
  }
}

/**
 * Returns a value with every text in it in one line and without characters that control a terminal or the direction of text.
 * Tenants choose names and messages.
 */
export function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value, (_, each) => (typeof each === 'string' ? plainText(each) : each)))
}

/** The colours of the program's own output mean nothing in a browser. */
export const plainText = (text: string): string =>
  isPlain.test(text) ? text : printable(oneLine(text).replaceAll('\u001b', String.raw`\u001b`))

/** Almost all texts are names. The other path looks at each of them several times. */
const isPlain = /^[!-~]{0,300}$/
