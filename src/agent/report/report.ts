import {
  type Budget,
  type NodeCheck,
  type NodeReport,
  nodeReports,
  reportLimits,
  type SlotReport,
  writtenSlots,
} from '../../api/node-report.ts'
import type { Api } from '../../kube/api.ts'
import type { Clock } from '../../kube/clock.ts'
import { isEqual } from '../../kube/equal.ts'
import { isKubeError } from '../../kube/errors.ts'
import type { Log } from '../../kube/log.ts'
import { mergePatch } from '../../kube/merge-patch.ts'
import { cutTo } from '../../kube/object.ts'
import { apiVersionOf } from '../../kube/resources.ts'
import { mayBeKept } from '../../slot/decide/kept.ts'
import { type ApiAnswer, answerOf } from './api-answer.ts'
import type { ReportContent } from './content.ts'
import type { NodeOwner } from './own-node.ts'
import { statementsOf } from './statements.ts'
import { isUrgent } from './urgency.ts'

export interface ReportWriter {
  /** Sets the content of the report. It is written at once if another program may act on the change, else soon. */
  update(content: ReportContent): void
  /** Writes until the signal fires. */
  run(signal: AbortSignal): Promise<void>
  /** The API server has this agent's slots. */
  readonly slotsTold: boolean
  /** Calls the listener for every write of the whole report that the API server has taken. */
  onAnswer(listener: (answer: ApiAnswer) => void): void
}

/** Fields of a disk that a report may have lost since the last one, also since that of an earlier agent. */
const troubleFields = { reason: '', message: '' } satisfies Partial<Budget>

export interface ReportWriterOptions {
  readonly api: Pick<Api, 'patch' | 'create'>
  readonly node: string
  /**
   * Returns the Node itself: as owner, it takes the report and the key in it along when it is deleted. Undefined: not
   * known.
   */
  readonly owner?: ((signal: AbortSignal) => Promise<NodeOwner | undefined>) | undefined
  readonly clock: Clock
  /** Monotonic clock of the node, ns. Default: `process.hrtime.bigint`. */
  readonly nowNs?: () => bigint
  readonly log: Log
  /** Awaited before each write: something more urgent may be under way. */
  readonly giveWay?: () => Promise<void>
  /** Milliseconds between two writes of mere progress. Default 5 s. */
  readonly everyMs?: number
  /** Milliseconds after which an unchanged report is written again: a silent agent counts as dead. Default 10 s. */
  readonly signOfLifeMs?: number
}

/** Creates the only writer of this node's report. */
export function createReportWriter(options: ReportWriterOptions): ReportWriter {
  const { api, node, clock, log, everyMs = 5_000, signOfLifeMs = 10_000 } = options
  const { nowNs = process.hrtime.bigint } = options
  const listeners = new Set<(answer: ApiAnswer) => void>()
  let wanted: ReportContent | undefined
  let written: ReportContent | undefined
  let writtenAt = Number.NEGATIVE_INFINITY
  let isOwned = options.owner === undefined
  let wake = Promise.withResolvers<void>()

  const write = async (content: ReportContent, signal: AbortSignal): Promise<void> => {
    const { slots, memory, disk, ...rest } = withinLimits(content)
    const common = {
      ...rest,
      ...(memory && { memory, ...mergePatch({ disk: troubleFields }, { disk }) }),
      slotsKnown: slots !== undefined,
      updatedAt: new Date(clock.now()).toISOString(),
    }
    const patch = async (said: readonly SlotReport[] | undefined) => {
      // A merge patch leaves fields alone that it does not name.
      const status = { ...common, ...(said && listed(said)) }
      const sentNs = nowNs()
      const report = await api.patch(
        nodeReports,
        { name: node },
        { type: 'merge', body: { status } },
        { subresource: 'status', signal, timeoutMs: requestTimeoutMs },
      )
      const answer = answerOf(report, sentNs)
      if (answer !== undefined) for (const listener of listeners) listener(answer)
    }
    try {
      await patch(slots)
    } catch (error) {
      // There is no report, or one without a status: no earlier slots can stay.
      if (isKubeError(error, 'NotFound')) {
        // It may be for another Node of this name.
        isOwned = options.owner === undefined
        const body = {
          apiVersion: apiVersionOf(nodeReports),
          kind: nodeReports.kind,
          metadata: { name: node },
        }
        await api.create<NodeReport>(nodeReports, body, { signal, timeoutMs: requestTimeoutMs })
      } else if (!isKubeError(error, 'Invalid') || slots !== undefined) throw error
      await patch(slots ?? [])
    }
    written = content
    writtenAt = clock.monotonic()
    if (!isOwned) await own(signal)
  }

  /**
   * Sets the owner after the report is written: no client waits for it. Without an owner the report stays until a
   * client deletes it.
   */
  const own = async (signal: AbortSignal): Promise<void> => {
    try {
      const owner = await options.owner?.(signal)
      const metadata = { ownerReferences: owner === undefined ? [] : [owner] }
      if (owner !== undefined)
        await api.patch(
          nodeReports,
          { name: node },
          { type: 'merge', body: { metadata } },
          { signal, timeoutMs: requestTimeoutMs },
        )
      isOwned = true
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'cannot make the Node the owner of the report yet')
    }
  }

  /** Milliseconds until the next write is due; undefined: nothing to write yet. */
  const dueInMs = (): number | undefined => {
    if (wanted === undefined) return undefined
    if (written === undefined || isUrgent(written, wanted)) return 0
    const pause = isEqual(written, wanted) ? signOfLifeMs : everyMs
    return Math.max(writtenAt + pause - clock.monotonic(), 0)
  }

  return {
    get slotsTold() {
      return written?.slots !== undefined
    },
    onAnswer: listener => void listeners.add(listener),
    update(content) {
      // Called at every change of any pod. Most changes do not affect the report, and a write that is due stays due.
      if (wanted !== undefined && isEqual(wanted, content)) return
      wanted = content
      wake.resolve()
    },
    async run(signal) {
      while (!signal.aborted) {
        wake = Promise.withResolvers()
        const inMs = dueInMs()
        try {
          if (inMs === 0 && wanted !== undefined) {
            // The failover of another slot may wait for a statement.
            const isNews = !isEqual(statementsOf(written), statementsOf(wanted))
            if (options.giveWay !== undefined && !isNews) await options.giveWay()
            await write(wanted, signal)
            continue
          }
        } catch (error) {
          if (signal.aborted) return
          log.warn({ err: error }, 'cannot write the report')
          await clock.sleep(retryMs, signal).catch(() => undefined)
          continue
        }
        const over = new AbortController()
        // A plain reason is cheap; the default one is an error with a stack.
        const end = () => over.abort('over')
        signal.addEventListener('abort', end, { once: true })
        const due = clock.sleep(inMs ?? everyMs, over.signal).catch(() => undefined)
        await Promise.race([wake.promise, due])
        signal.removeEventListener('abort', end)
        end()
      }
    },
  }
}

/**
 * Cuts content that the API server would refuse, and says so. After a refusal the report would say nothing of this
 * node.
 */
function withinLimits(content: ReportContent): ReportContent {
  const { checks, cpuFeatures } = content
  const features = cpuFeatures?.filter(({ length }) => length <= reportLimits.cpuFeature)
  const unsaid = (cpuFeatures?.length ?? 0) - Math.min(features?.length ?? 0, reportLimits.cpuFeatures)
  // A program needs all features of its node: a feature that the report omits must not count as missing.
  const all = unsaid === 0 ? checks : [tooManyFeatures(unsaid), ...checks]
  return {
    ...content,
    ready: content.ready && unsaid === 0,
    ...(features && { cpuFeatures: features.slice(0, reportLimits.cpuFeatures) }),
    checks: all.length <= reportLimits.checks ? all : summedUp(all),
  }
}

const tooManyFeatures = (unsaid: number): NodeCheck => ({
  name: 'cpu-features',
  ok: false,
  message: `the processors have ${unsaid} more features than a report can hold`,
  cure: 'report the processor to us; until then this node keeps no memory',
})

/** Puts failed checks first, and sums up those without room in one check. */
function summedUp(checks: readonly NodeCheck[]): NodeCheck[] {
  const byVerdict = [...checks.filter(({ ok }) => !ok), ...checks.filter(({ ok }) => ok)]
  const room = reportLimits.checks - 1
  const others = byVerdict.slice(room)
  const ok = others.every(check => check.ok)
  return [
    ...byVerdict.slice(0, room),
    {
      ...{ name: 'others', ok, message: `${others.length} more checks do not fit here` },
      ...(ok ? {} : { cure: 'see the log of the agent' }),
    },
  ]
}

/**
 * Puts slots first that may be needed soon: primaries, slots that could be restored here, and other slots with memory
 * here. A slot that is left out without any memory here does not count: the operator takes a slot for empty that the
 * report does not name, unless the count says that there are more.
 */
function listed(slots: readonly SlotReport[]) {
  const rank = (slot: SlotReport) =>
    slot.role === 'source' || slot.silentTerm !== undefined || slot.grant !== undefined
      ? 0
      : slot.usable !== undefined
        ? 1
        : mayBeKept(slot)
          ? 2
          : 3
  const isWhole = slots.length <= reportLimits.slots
  const sorted = isWhole ? slots : [...slots].sort((a, b) => rank(a) - rank(b))
  const room = sorted.slice(0, reportLimits.slots)
  return {
    slots: writtenSlots(
      room.map(slot =>
        slot.message === undefined ? slot : { ...slot, message: cutTo(slot.message, reportLimits.message) },
      ),
    ),
    slotCount: room.length + sorted.slice(reportLimits.slots).filter(mayBeKept).length,
  }
}

const requestTimeoutMs = 10_000
const retryMs = 1_000
