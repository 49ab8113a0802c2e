/** A drill on a playground, from its start to its end. */
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureImages, imageNames } from '../images/build.ts'
import { type Cluster, openCluster, up } from '../playground/cluster.ts'
import { deployOperator } from '../playground/deploy.ts'
import { type Api, createApi } from '../src/kube/api.ts'
import { loadConnection } from '../src/kube/connection.ts'
import { messageOf } from '../src/kube/errors.ts'
import { namespaces } from '../src/kube/resources.ts'
import type { Progress } from '../src/terminal/progress.ts'
import { protectionMs } from './bounds.ts'
import type { Violation } from './check/violation.ts'
import type { Choose } from './choice.ts'
import { gather } from './client/crowd.ts'
import { commitOf } from './commit.ts'
import { keepEvidence } from './evidence.ts'
import { type History, writeHistory } from './history.ts'
import { createJournal } from './journal.ts'
import { healNetwork } from './nemesis/network.ts'
import { untilProtected } from './protection.ts'
import { randomOf } from './random.ts'
import { addRow, type Row, type RunRecord, roundsOf, seedOf, writeRecord } from './record.ts'
import { startRecorder } from './recorder.ts'
import { play } from './round.ts'
import {
  bear,
  createSet,
  type FailoverOptions,
  type Stage,
  serviceAddresses,
  setName,
  slotCount,
  specOf,
} from './stage.ts'
import { until } from './until.ts'

export interface RunOptions {
  readonly name: string
  readonly keep: boolean
  /** The plan, and the rounds that are over. */
  readonly record: RunRecord
  /** File of the record; undefined: a new one. */
  readonly recordPath: string | undefined
  /** Chooses the nemeses of each round. */
  readonly choose: Choose
  /** Keeps histories without violations, too. */
  readonly keepHistories: boolean
  readonly say: (text: string) => void
  readonly progress: Progress
  readonly signal: AbortSignal
}

/** A node for the clients, and three for the set. */
const nodeCount = 4

/** Runs `work` on a playground with the operator; takes down what it has started, also after a failure. */
export async function onPlayground<T>(
  { name, keep, progress, signal }: Pick<RunOptions, 'name' | 'keep' | 'progress' | 'signal'>,
  work: (cluster: Cluster, api: Api) => Promise<T>,
): Promise<T> {
  const wasUp = (await openCluster(name)) !== undefined
  const images = await progress.step('images', step =>
    ensureImages(imageNames, { progress: step.detail, signal }),
  )
  const archives = Object.values(images).map(({ path }) => path)
  const cluster = await up({ name, nodes: nodeCount, images: archives, progress, signal })
  const api = createApi({ connection: await loadConnection({ kubeconfig: cluster.kubeconfigPath }) })
  try {
    await deployOperator(cluster, { progress, signal })
    return await work(cluster, api)
  } finally {
    await api.close()
    if (!wasUp && !keep) await cluster.down()
  }
}

/** Starts the set and its clients, and ends both after `work`. */
export async function onStage<T>(
  { cluster, api, spec, signal }: { cluster: Cluster; api: Api; spec: object; signal: AbortSignal },
  work: (
    stage: Stage,
    journal: ReturnType<typeof createJournal>,
    crowd: ReturnType<typeof gather>,
  ) => Promise<T>,
): Promise<T> {
  const namespace = `drill-${Date.now().toString(36)}`
  const [clientNode = ''] = cluster.nodes
  const journal = createJournal()
  const ending = new AbortController()
  let follow = () => {}
  await createSet(api, namespace, spec)
  try {
    const recorder = await startRecorder({
      ...{ api, namespace, name: setName, tell: journal.tell, changed: () => follow() },
      signal: ending.signal,
    })
    const stage: Stage = { api, cluster, namespace, recorder, clientNode, signal }
    for (const node of cluster.nodes) await healNetwork(stage, node)
    await until(async () => recorder.slots.size === slotCount, protectionMs, signal)
    await untilProtected(stage, 0)
    for (const birth of await bear(stage)) journal.tell(birth)
    // Copies from before have other numbers.
    await untilProtected(stage, Date.now())
    const crowd = gather(stage, await serviceAddresses(stage), journal.tell)
    follow = () => crowd.follow()
    crowd.follow()
    try {
      return await work(stage, journal, crowd)
    } finally {
      follow = () => {}
      await crowd.stop()
    }
  } finally {
    ending.abort()
    await api.delete(namespaces, { name: namespace }, { propagationPolicy: 'Background' })
  }
}

/** Directory of histories and records. */
const directory = join(tmpdir(), 'understudy-drill')

/** @returns the rounds of the record, with those that were played now, and whether all of them are there */
export async function drill(options: RunOptions): Promise<{ rows: readonly Row[]; isComplete: boolean }> {
  const { record, say, signal } = options
  const { plan } = record
  // Before the record changes: it may be a file of the repository.
  const commit = await commitOf(signal)
  await mkdir(directory, { recursive: true })
  const path = options.recordPath ?? join(directory, `record-${plan.seed}-${Date.now().toString(36)}.jsonl`)
  await writeRecord(path, record)
  say(`record: ${path}`)
  const rows = [...record.rows]
  const more: FailoverOptions = plan.grant ? { grant: 'Heir' } : {}
  const isComplete = await onPlayground(options, (cluster, api) =>
    onStage(
      { cluster, api, spec: specOf(cluster.nodes[0] ?? '', more), signal },
      async (stage, journal, crowd) => {
        for (const round of roundsOf(record)) {
          const random = randomOf(seedOf(plan, round))
          const nemeses = options.choose(random, round)
          const names = nemeses.map(({ name }) => name)
          say(`round ${round}/${plan.rounds}: ${names.join(' + ')}`)
          const played = await play(stage, journal, crowd, { nemeses, random, say: text => say(`  ${text}`) })
          const { outages, figures, violations, moves } = played
          const row: Row = {
            type: 'round',
            round,
            commit,
            nemeses: names,
            outages,
            figures,
            violations,
            moves,
          }
          rows.push(row)
          await addRow(path, row)
          await tellRow(options, row, played.history, stage)
        }
      },
    ),
  ).then(
    () => true,
    (error: unknown) => {
      // The rounds so far are still worth a summary.
      say(`stopped: ${messageOf(error)}`)
      say(`to continue: npm run drill -- --continue ${path}`)
      return false
    },
  )
  return { rows, isComplete }
}

/** Says how a round went, and keeps its history if it is worth that. */
async function tellRow(
  { record: { plan }, keepHistories, say }: Pick<RunOptions, 'record' | 'keepHistories' | 'say'>,
  { round, nemeses, outages, violations, moves = [] }: Row,
  history: History,
  stage: Stage,
): Promise<void> {
  say(`  outages: ${outages.map(ms => `${ms.toFixed(0)} ms`).join(', ') || 'none'}`)
  for (const { ended, phase, reason } of moves) say(`  move: ${ended} (${phase ?? '-'}, ${reason ?? '-'})`)
  const isBad = violations.length > 0
  if (isBad || keepHistories) {
    const name = `${nemeses.join('+')}-${plan.seed}-${round}-${Date.now().toString(36)}.jsonl`
    const path = join(directory, name)
    await writeHistory(path, history)
    say(`  history: ${path}`)
    if (isBad) await keepEvidence(stage, `${path}.evidence`)
  }
  for (const line of linesOf(violations)) say(`  ${line}`)
}

/** One line for each rule and slot: the first violation, and how many there are. */
function linesOf(violations: readonly Violation[]): string[] {
  const kinds = Map.groupBy(violations, ({ rule, slot = '' }) => `${rule} ${slot}`)
  return [...kinds.values()].map(([first, ...more]) => {
    const where = first?.slot === undefined ? '' : ` of slot ${first.slot}`
    return `VIOLATION ${first?.rule}${where}: ${first?.says}${more.length === 0 ? '' : ` (and ${more.length} more)`}`
  })
}
