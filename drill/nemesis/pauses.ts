/**
 * Pauses of nodes below and above the time-out. The clients are outside of the nodes' cgroups and run on: those of the
 * node itself ask its primary meanwhile, and hear whatever it says after the pause.
 */
import { readFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { pidsOf } from '../../playground/pids.ts'
import { identify, isGone, type ProcessIdentity, startTimeOf, stateOf } from '../../playground/process.ts'
import { counter } from '../../zoo/slots.ts'
import { electionMs, fencedMs, nodeTimeoutMs, silenceMs } from '../bounds.ts'
import { type Fault, now, type Pause, type Resume } from '../history.ts'
import { allSlots, podsOn, primariesOf, type Stage, slotsOn, targetNodes } from '../stage.ts'
import { type Nemesis, plain } from './nemesis.ts'
import { againstNode } from './nodes.ts'

const shortPauses = 10
const shortMs = [0.2 * nodeTimeoutMs, 0.8 * nodeTimeoutMs] as const
/** Until the next of them: its voters have answered the primary again, and its clients were served. */
const betweenMs = [2_000, 4_000] as const
/** The latest heartbeat before a pause is that old at most. */
const betweenBeatsMs = nodeTimeoutMs / 12
const longMs = [1.2 * nodeTimeoutMs, 15_000] as const

export const pauseShort: Nemesis = {
  name: 'pause-short',
  proves: `${shortPauses} pauses of nodes, each of 0.2 to 0.8 of nodeTimeout: no process ends, no slot changes hands, no fence lasts`,
  family: 'node',
  aim: async (stage, random) => {
    const pauses: Pause[] = []
    const faults: Fault[] = []
    return {
      ...plain,
      target: `${shortPauses} pauses of nodes with primaries`,
      slots: slotsOn(stage, targetNodes(stage)),
      unsaved: allSlots,
      outageMs: shortMs[1] + fencedMs,
      fencedMs,
      async strike() {
        for (let count = 0; count < shortPauses; count += 1) {
          const { node } = random.of(primariesOf(stage))
          const at = now()
          await stage.cluster.pauseNode(node)
          await sleep(random.between(...shortMs), undefined, { signal: stage.signal })
          await stage.cluster.resumeNode(node)
          const pause: Pause = { type: 'pause', at, node, ms: now() - at }
          pauses.push(pause)
          faults.push(...tooLong(stage, pause))
          await sleep(random.between(...betweenMs), undefined, { signal: stage.signal })
        }
      },
      async heal() {
        for (const node of targetNodes(stage)) await stage.cluster.resumeNode(node)
      },
      after: async () => [...pauses, ...faults],
    }
  },
}

/** A busy machine can make a pause longer than it should be. Such a pause may cost a primary its slot. */
function tooLong(stage: Stage, { at, node, ms }: Pause): Fault[] {
  if (ms <= shortMs[1] + betweenBeatsMs) return []
  const target = `${node}, for ${(ms / 1000).toFixed(1)} s instead of ${shortMs[1] / 1000} s at most`
  return [mayFailOver(stage, { at, nemesis: pauseShort.name, target })]
}

/** The pause of a busy machine that may cost any primary its slot. */
function mayFailOver(stage: Stage, about: Pick<Fault, 'at' | 'nemesis' | 'target'>): Fault {
  const nodes = targetNodes(stage)
  return {
    ...{ type: 'fault', ...about, mayAnswerEmpty: false, unsaved: allSlots },
    ...{ slots: slotsOn(stage, nodes), pods: podsOn(stage, nodes), mayPromote: true },
    outageMs: silenceMs + electionMs,
  }
}

export const pauseLong: Nemesis = {
  name: 'pause-long',
  proves:
    'a node that was paused for 1.2 times nodeTimeout to 15 s: its primary stops at once, and is thawed or removed',
  family: 'node',
  aim: async (stage, random) => {
    const { node } = random.of(primariesOf(stage))
    const olds = await oldsOn(stage, node)
    let resumed: Resumed[] = []
    let pausedAt = 0
    const pauses: Pause[] = []
    return {
      ...againstNode(stage, node),
      holdMs: random.between(...longMs),
      strike: () => {
        pausedAt = now()
        return stage.cluster.pauseNode(node)
      },
      async heal() {
        // It has a machine of its own, in truth, as clients have.
        setPriority(-15)
        const watches = olds.map(watchStop)
        await stage.cluster.resumeNode(node)
        pauses.push({ type: 'pause', at: pausedAt, node, ms: now() - pausedAt })
        resumed = await Promise.all(watches)
        setPriority(0)
      },
      after: async () => [...pauses, ...(await Promise.all(resumed.map(resumeOf)))],
    }
  },
}

/** As the host under all of them does, for a snapshot or a move of their machines. */
export const pauseAll: Nemesis = {
  name: 'pause-all',
  proves:
    'all nodes that were paused together for 1.2 times nodeTimeout to 15 s: no process ends, no slot changes hands',
  family: 'node',
  aim: async (stage, random) => {
    const nodes = targetNodes(stage)
    // The order is up to the host.
    const last = random.of(nodes)
    const faults: Fault[] = []
    return {
      ...plain,
      target: `all nodes, and ${last} resumes last`,
      slots: slotsOn(stage, nodes),
      unsaved: allSlots,
      outageMs: longMs[1] + fencedMs,
      holdMs: random.between(...longMs),
      strike: async () => {
        for (const node of nodes) await stage.cluster.pauseNode(node)
      },
      async heal() {
        const at = now()
        for (const node of [...nodes.filter(it => it !== last), last]) await stage.cluster.resumeNode(node)
        // As if the last one had been cut off: voters listen for another sixth of the time-out.
        if (now() - at > nodeTimeoutMs / 6 - betweenBeatsMs)
          faults.push(
            mayFailOver(stage, { at, nemesis: pauseAll.name, target: `${last}, which resumed late` }),
          )
      },
      after: async () => faults,
    }
  },
}

/** A primary on a node that is to be paused. */
interface Old extends Pick<Resume, 'slot' | 'uid' | 'pod'> {
  readonly processes: readonly ProcessIdentity[]
}

interface Resumed {
  readonly old: Old
  readonly at: number
  readonly stoppedMs: number | undefined
}

async function resumeOf({ old, at, stoppedMs }: Resumed): Promise<Resume> {
  const { slot, uid, pod } = old
  return { type: 'resume', at, slot, uid, pod, stoppedMs, fate: await fateOf(old) }
}

const oldsOn = (stage: Stage, node: string): Promise<Old[]> =>
  Promise.all(
    primariesOf(stage)
      .filter(primary => primary.node === node)
      .map(async ({ slot, pod }) => {
        const { uid, name } = pod.metadata
        const found = await Promise.all((await pidsOf(uid, counter.program)).map(identify))
        return { slot, uid, pod: name, processes: found.filter(process => process !== undefined) }
      }),
  )

const watchMs = 1_000
/** Until the machine has carried out the order to resume. */
const orderMs = 30_000

/**
 * Begins before the order to resume, because a busy machine takes its time for that. The kernel shows a process of a
 * frozen cgroup in state D.
 */
async function watchStop(old: Old): Promise<Resumed> {
  const begun = now()
  for (let ranAt: number | undefined; ; ) {
    const states = old.processes.map(stateNow)
    const at = now()
    if (states.some(state => state !== 'D') || at - begun > orderMs) ranAt ??= at
    if (ranAt !== undefined && states.some(state => state === 'T' || state === undefined))
      return { old, at: ranAt, stoppedMs: at - ranAt }
    if (ranAt !== undefined && at - ranAt > watchMs) return { old, at: ranAt, stoppedMs: undefined }
    await sleep(1)
  }
}

/** A checkpoint stops it for some milliseconds as well. */
async function fateOf({ processes }: Old): Promise<Resume['fate']> {
  for (const end = now() + watchMs; ; ) {
    const states = processes.map(stateNow)
    if (states.every(state => state === undefined)) return 'Gone'
    if (!states.includes('T')) return 'Runs'
    if (now() > end) return 'Stopped'
    await sleep(20)
  }
}

/** Returns its letter in /proc; undefined: it has ended. Without a wait for other threads of this process. */
function stateNow({ pid, startTime }: ProcessIdentity): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const state = stateOf(stat)
    return startTimeOf(stat) === startTime && state !== 'Z' && state !== 'X' ? state : undefined
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}
