import { AgentError } from '../../api/agent-errors.ts'
import { type DiskKey, diskHalfAnnotation, type Halves } from '../../api/disk-half.ts'
import type { NodeReport } from '../../api/node-report.ts'
import type { KeyParts } from '../../checkpoint/disk/generation-key.ts'
import type { Clock } from '../../kube/clock.ts'

export interface KeyPartsOptions {
  readonly agentsHalf: (signal: AbortSignal) => Promise<Uint8Array>
  readonly diskKey: DiskKey
  /** The report of this node as the API server has it; undefined: none is known. */
  readonly report: () => NodeReport | undefined
  readonly node: string
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
}

export interface KeyPartsReader {
  /** @throws AgentError KeyMissing, KubeError or the signal's reason. */
  read(signal: AbortSignal): Promise<KeyParts>
  /** Waits until the operator has told the half of this node, for `ms` at most. */
  arrival(ms: number, signal: AbortSignal): Promise<void>
}

const lookMs = 50

/** Brings the parts of keys together that a node needs beside those in Leases. */
export function createKeyParts({
  agentsHalf,
  diskKey,
  report,
  node,
  clock,
}: KeyPartsOptions): KeyPartsReader {
  let known: { readonly text: string; readonly halves: Halves } | undefined

  async function ours(): Promise<Halves | undefined> {
    const text = report()?.metadata.annotations?.[diskHalfAnnotation]
    if (text === undefined || text === known?.text) return known?.halves
    const halves = await diskKey.open(text, node)
    // One for an earlier boot stays in the report until the operator has seen the present key.
    if (halves !== undefined) known = { text, halves }
    return known?.halves
  }

  return {
    async read(signal) {
      const halves = await ours()
      if (halves === undefined)
        throw new AgentError(
          'KeyMissing',
          `the operator has not written the half of this node into the annotation ${diskHalfAnnotation} of its NodeReport, for the present key of the node`,
        )
      return { agents: await agentsHalf(signal), node: halves }
    },
    async arrival(ms, signal) {
      const until = clock.monotonic() + ms
      while ((await ours()) === undefined && clock.monotonic() < until) await clock.sleep(lookMs, signal)
    },
  }
}
