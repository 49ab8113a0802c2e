import { nodeReports } from '../../src/api/node-report.ts'
import type { Api } from '../../src/kube/api.ts'
import { demand } from '../bench.ts'

const metricsPort = 9445

/** A node's agent's measurements of all generations so far: sums and counts of its histograms. */
export interface Totals {
  readonly count: number
  /** Time for which primaries were stopped, seconds. */
  readonly frozen: number
  /** Part of that time that CRIU itself reports, seconds. */
  readonly criuFrozen: number
  /** From the stop of a primary until its generation was complete on this node, seconds. */
  readonly pipeline: number
  /** Size of whole generations, bytes. */
  readonly size: number
  /** Bytes on the wire; only of a holder. */
  readonly shipped: number
}

export type Role = 'source' | 'holder'

export interface AgentMetrics {
  read(role: Role): Promise<Totals>
}

/** @throws Error if no agent reports for that node */
export async function agentMetrics(api: Api, node: string, signal: AbortSignal): Promise<AgentMetrics> {
  const { status } = await api.get(nodeReports, { name: node }, { signal })
  const address = demand(status?.address, `the address of the agent of ${node}`)
  const host = address.slice(0, address.lastIndexOf(':'))
  return {
    async read(role) {
      const response = await fetch(`http://${host}:${metricsPort}/metrics`, { signal })
      if (!response.ok) throw new Error(`metrics of ${node}: ${response.status}`)
      return totalsOf(await response.text(), role)
    },
  }
}

/** A series that does not exist yet counts as 0. */
export function totalsOf(text: string, role: Role): Totals {
  const values = new Map(
    text
      .split('\n')
      .filter(line => line.startsWith('understudy_'))
      .map((line): [string, number] => {
        const at = line.lastIndexOf(' ')
        return [line.slice(0, at), Number(line.slice(at + 1))]
      }),
  )
  const read = (name: string) => values.get(`understudy_${name}`) ?? 0
  const of = `{role="${role}"}`
  return {
    count: read(`generation_pipeline_seconds_count${of}`),
    frozen: read('checkpoint_frozen_seconds_sum'),
    criuFrozen: read('checkpoint_criu_frozen_seconds_sum'),
    pipeline: read(`generation_pipeline_seconds_sum${of}`),
    size: read(`generation_size_bytes_sum${of}`),
    shipped: read('generation_shipped_bytes_sum'),
  }
}

/**
 * Returns the totals that exactly one more generation has added. Undefined if there is no new generation, or more than
 * one: their totals cannot be separated.
 */
export function oneMore(before: Totals, after: Totals): Totals | undefined {
  if (after.count !== before.count + 1) return undefined
  return {
    count: 1,
    frozen: after.frozen - before.frozen,
    criuFrozen: after.criuFrozen - before.criuFrozen,
    pipeline: after.pipeline - before.pipeline,
    size: after.size - before.size,
    shipped: after.shipped - before.shipped,
  }
}
