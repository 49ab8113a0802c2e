/** `npm run sim -- faulted`: moves at random with a fault each, and whether the source or the target was right afterwards. */
import { seededRandom } from '../../../src/kube/random.ts'
import type { MoveFate } from '../model/move-fates.ts'
import { runRound, type Scenario } from '../model/round.ts'
import { phases, type Row, rows } from './rows.ts'

export interface FaultedMove {
  readonly row: Row
  readonly phase: (typeof phases)[number]
  readonly scenario: Scenario
}

export interface Told {
  readonly row: string
  readonly phase: string
  readonly end: string
  readonly holder: MoveFate['holder']
  /** Rules that are broken; empty: none. */
  readonly wrong: readonly string[]
  readonly scenario: string
}

/** Returns the moves of a seed: each row in each phase in turn, all else at random. */
export function movesOf(count: number, seed: number): readonly FaultedMove[] {
  const random = seededRandom(seed)
  const below = (n: number): number => Math.floor(random.next() * n)
  return Array.from({ length: count }, (_, index) => {
    const row = rows[index % rows.length] as Row
    const phase = phases[Math.floor(index / rows.length) % phases.length] as (typeof phases)[number]
    // Half of the faults last longer than the move may.
    const forMs = below(2) === 0 ? 1_000 + below(8_000) : 60_000
    const numbered = below(3) === 0
    const afterMs = below(2) === 0 ? below(20) : below(1_500)
    const scenario: Scenario = {
      ...{ seed: below(2 ** 30), nodes: 3 + below(3), replicas: 1, coldBackups: 0, copies: 1 + below(2) },
      ...{ hotBackups: numbered ? 0 : below(2), containers: 'one', moves: true, numbered },
      ...(below(2) === 0 && { nodeTimeoutMs: 3_000 }),
      steps: [
        {
          afterMs: below(4_000),
          command: { type: 'move', primary: 0, to: row.to, maxDowntimeMs: undefined },
        },
      ],
      onPhase: row.fault === undefined ? [] : [{ phase, afterMs, command: row.fault(forMs) }],
    }
    return { row, phase, scenario }
  })
}

/** Runs one move. A rule of the simulation that is broken counts, and so does a wrong holder of the slot. */
export async function tryMove({ row, phase, scenario }: FaultedMove): Promise<Told> {
  const { violations, fates } = await runRound(scenario)
  const [first] = fates
  const { end, holder } = first ?? { end: 'not asked for', holder: 'unknown' as const }
  const wrong = violations.map(({ rule, what }) => `${rule}: ${what}`)
  const why = first === undefined ? undefined : mistakeOf(row, first)
  return {
    ...{ row: row.name, phase, end, holder, scenario: JSON.stringify(scenario) },
    wrong: why === undefined ? wrong : [...wrong, why],
  }
}

/** Before the swap the source has the slot, afterwards the target. A move that is called off while it switches may end either way. */
function mistakeOf({ mayBeOther }: Row, { name, end, holder }: MoveFate): string | undefined {
  if (mayBeOther) return undefined
  const may: readonly MoveFate['holder'][] =
    end === 'succeeded'
      ? ['target']
      : end === 'called off in Stopping' || end === 'called off in Switching'
        ? ['source', 'target']
        : ['source']
  return may.includes(holder) ? undefined : `WrongHolder: ${name} ${end}, and ${holder} has the slot`
}

/** Returns how often each row ended in which way. */
export function table(all: readonly Told[]): string {
  const lines = [...Map.groupBy(all, ({ row }) => row)].map(([row, of]) => {
    const counts = [...Map.groupBy(of, ({ end, holder }) => `${end}: ${holder}`)].map(
      ([end, some]) => `${some.length} ${end}`,
    )
    const wrong = of.filter(each => each.wrong.length > 0).length
    return `${row.padEnd(30)} ${String(of.length).padStart(4)} moves, ${wrong} wrong   ${counts.sort().join(', ')}`
  })
  const aborted = all.filter(({ end }) => end.startsWith('called off'))
  const kept = aborted.filter(({ holder }) => holder === 'source').length
  return [
    ...lines,
    '',
    `${aborted.length} called off: the source has the slot in ${kept}, the target in ${aborted.length - kept}, whose swap was under way`,
    `${all.length} moves: ${all.filter(({ wrong }) => wrong.length === 0).length} right, ${all.filter(({ wrong }) => wrong.length > 0).length} wrong`,
  ].join('\n')
}
