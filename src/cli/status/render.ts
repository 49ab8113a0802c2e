import type { LastMove } from '../../api/migrating-pod.ts'
import type { LastFailover, SlotFailover } from '../../api/slot-status.ts'
import { table } from '../../terminal/table.ts'
import { age, ageOf, bytes, duration } from '../output/quantities.ts'
import { oneLine, type Paint } from '../terminal.ts'
import type { MigratingPodFacts, MoveFacts, NodeFacts, SetFacts, SlotFacts } from './facts.ts'
import type { PodFacts } from './pods.ts'

export interface RenderOptions {
  readonly wide: boolean
  readonly allNamespaces: boolean
  /** Wall clock, ms. */
  readonly now: number
  readonly paint: Paint
}

const countOf = ({ inPlace, wanted }: SetFacts['primaries']) => `${inPlace}/${wanted}`

/** One line for each set. */
export function renderList(
  sets: readonly SetFacts[],
  { wide, allNamespaces, now, paint }: RenderOptions,
): string {
  return table(
    [
      ...(allNamespaces ? ['NAMESPACE'] : []),
      ...['NAME', 'READY', 'PRIMARIES', 'HOT', 'COLD', 'MEMORY', 'OLDEST STATE', 'AGE'],
      ...(wide ? ['MODE', 'INTERVAL', 'LAST FAILOVER'] : []),
      'NEEDS',
    ],
    sets.map(set => [
      ...(allNamespaces ? [set.namespace] : []),
      set.name,
      set.ready ? paint('green', 'yes') : paint('red', 'no'),
      countOf(set.primaries),
      countOf(set.hotBackups),
      countOf(set.coldBackups),
      protectionOf(set),
      oldestState(set, now),
      ageOf(set.createdAt, now),
      ...(wide
        ? [
            set.memory?.mode ?? '-',
            set.memory?.interval ?? '-',
            set.lastFailover === undefined ? '-' : failoverText(set.lastFailover, now),
          ]
        : []),
      [...new Set(set.troubles.map(it => it.reason))].join(', '),
    ]),
  )
}

/** Numbers of slots by their protection: `2 Frozen, 1 None`. */
function protectionOf({ memory, slots }: SetFacts): string {
  if (memory === undefined) return '-'
  const counts = new Map<string, number>()
  for (const { protection = 'None' } of slots) counts.set(protection, (counts.get(protection) ?? 0) + 1)
  return counts.size === 0 ? '0 slots' : [...counts].map(([name, count]) => `${count} ${name}`).join(', ')
}

function oldestState({ slots }: SetFacts, now: number): string {
  const [oldest] = slots.flatMap(({ savedAt }) => savedAt ?? []).sort()
  return ageOf(oldest, now) || '-'
}

/** All facts about one set. */
export function renderSet(set: SetFacts, options: RenderOptions): string {
  const { now, paint } = options
  const { primaries, hotBackups, coldBackups, memory, lastFailover } = set
  const head = [
    `${paint('bold', `${set.namespace}/${set.name}`)}  ${set.ready ? paint('green', 'Ready') : paint('red', 'not Ready')}`,
    `  primaries      ${countOf(primaries)} ready`,
    `  hot backups    ${countOf(hotBackups)} ready`,
    `  cold backups   ${countOf(coldBackups)} at their gate`,
    `  memory         ${memory === undefined ? 'not kept: each hot backup runs with its own memory' : `${memory.mode}${memory.source === 'state' ? ', pulled from the application' : ''}, every ${memory.interval}`}`,
    ...(set.migratingPod === undefined ? [] : migratingPodLines(set.migratingPod, now)),
    ...set.moves.map(moveLine),
    ...(lastFailover === undefined ? [] : [`  last failover  ${failoverLine(lastFailover, now)}`]),
  ].join('\n')
  return [
    head,
    ...(set.slots.length > 0 ? [slotTable(set, options)] : []),
    ...(set.pods.length > 0 ? [podTable(set.pods, options)] : []),
    nodesPart(set, options),
    troublesPart(set, paint),
  ]
    .filter(part => part !== '')
    .join('\n\n')
}

function migratingPodLines({ state, activePod, node, lastMove }: MigratingPodFacts, now: number): string[] {
  const where = activePod === undefined ? '' : `: ${activePod}${node === undefined ? '' : ` on ${node}`}`
  return [
    `  migrating pod  ${state ?? 'not seen by an operator yet'}${where}`,
    ...(lastMove === undefined ? [] : [`  last move      ${lastMoveText(lastMove, now)}`]),
  ]
}

function lastMoveText({ from, to, reason, seconds, stateAge, at }: LastMove, now: number): string {
  const stood = seconds === undefined ? '' : `, no pod ran for ${duration(seconds)}`
  const memory = stateAge === undefined ? '' : `, memory ${age(stateAge)} old`
  return `${from} → ${to} (${reason}), ${ageOf(at, now)} ago${stood}${memory}`
}

function moveLine({ migration, pod, phase, from, to, reason, message }: MoveFacts): string {
  const why = reason === undefined ? '' : ` (${reason}${message ? `: ${message}` : ''})`
  return `  moves          ${oneLine(`${pod}, ${from ?? '?'} → ${to ?? '?'}: ${phase}${why}, Migration ${migration}`)}`
}

const nodesOf = ({ usableOn = [], usableOnCount = usableOn.length }: SlotFacts): string => {
  const more = usableOnCount - usableOn.length
  return `${usableOn.join(', ') || '-'}${more > 0 ? ` and ${more} more` : ''}`
}

function slotTable({ slots, memory }: SetFacts, { now, paint, wide }: RenderOptions): string {
  const protection = ({ protection: name = 'None' }: SlotFacts) =>
    paint(name === 'None' ? 'red' : 'green', name)
  const ofMemory = (slot: SlotFacts): string[] => [
    String(slot.generation ?? 0),
    ageOf(slot.savedAt, now) || '-',
    protection(slot),
    nodesOf(slot),
    ...(wide
      ? [
          slot.intervalSeconds === undefined
            ? '-'
            : [duration(slot.intervalSeconds), slot.intervalReason ?? []].flat().join(' '),
          slot.pipelineSeconds === undefined ? '-' : duration(slot.pipelineSeconds),
          slot.grantedTo ?? '-',
        ]
      : []),
  ]
  return table(
    [
      ...['SLOT', 'POD', 'NODE', 'READY', 'EPOCH'],
      ...(memory === undefined ? [] : ['GENERATION', 'STATE AGE', 'PROTECTION', 'USABLE ON']),
      ...(memory !== undefined && wide ? ['INTERVAL', 'PIPELINE', 'GRANTED TO'] : []),
      'LAST FAILOVER',
    ],
    slots.map(slot => [
      String(slot.slot),
      slot.pod,
      slot.node ?? '-',
      slot.ready ? 'yes' : paint('red', 'no'),
      String(slot.epoch),
      ...(memory === undefined ? [] : ofMemory(slot)),
      slot.lastFailover === undefined ? '' : failoverText(slot.lastFailover, now),
    ]),
  )
}

const podTable = (pods: readonly PodFacts[], { now, paint }: RenderOptions): string =>
  table(
    ['POD', 'KIND', 'SLOT', 'NODE', 'STATE', 'RESTARTS', 'AGE', 'WHY'],
    pods.map(pod => [
      pod.name,
      pod.kind,
      pod.kind === 'primary' ? String(pod.slot ?? '') : '',
      pod.node ?? '-',
      paint(pod.inPlace ? 'green' : 'red', pod.state),
      String(pod.restarts),
      ageOf(pod.createdAt, now),
      pod.note ?? '',
    ]),
  )

function nodesPart({ nodes, memory }: SetFacts, { now, paint }: RenderOptions): string {
  if (memory === undefined) return ''
  if (nodes === undefined)
    return 'nodes: not shown, because you may not read nodereports (bind understudy-view with a ClusterRoleBinding)'
  return table(
    ['NODE', 'AGENT', 'READY', 'REPORTED', 'KEEPS'],
    nodes.map(node => [
      node.node,
      node.agent ?? paint('red', 'none'),
      node.ready ? 'yes' : paint('red', node.problem ?? 'no'),
      node.reportedAt === undefined ? '-' : `${ageOf(node.reportedAt, now)} ago`,
      keeps(node),
    ]),
  )
}

const keeps = ({ slots }: NodeFacts): string =>
  slots
    .map(({ slot, role, generation, usable, bytes: size, reason }) => {
      const how = role === 'source' ? 'source' : (usable ?? 'not usable')
      const why = reason === undefined || usable !== undefined ? '' : ` (${reason})`
      return `slot ${slot}: ${how}${why}, generation ${generation}${size === undefined ? '' : `, ${bytes(size)}`}`
    })
    .join('; ')

const troublesPart = ({ troubles }: SetFacts, paint: Paint): string =>
  troubles.length === 0
    ? `${paint('green', '✓')} all conditions are as expected`
    : troubles
        .map(
          ({ condition, status, reason, message, cure }) =>
            `${paint('red', '✗')} ${oneLine(`${condition} is ${status} (${reason})${message === '' ? '' : `: ${message}`}`)}` +
            (cure === undefined ? '' : `\n  → ${cure}`),
        )
        .join('\n')

function failoverText({ at, seconds, stateAge }: SlotFailover, now: number): string {
  const memory = stateAge === undefined ? '' : `, memory ${age(stateAge)} old`
  return `${ageOf(at, now)} ago in ${duration(seconds)}${memory}`
}

export function failoverLine(failover: LastFailover, now: number): string {
  const { slot, from, to, reason } = failover
  return `slot ${slot}, ${from} → ${to} (${reason}), ${failoverText(failover, now)}`
}
