import type { Sampler } from '../report.ts'

/** Seconds. */
export interface StateAge {
  readonly age: number
  readonly intervalSeconds: number
  readonly pipeline: number
  /** Why the interval is not kept; undefined: it is. */
  readonly reason: string | undefined
}

/** Notes how old a memory was when its primary was killed, beside the limit of two intervals and the pipeline. */
export function noteAge(
  samples: Sampler,
  prefix: string,
  { age, intervalSeconds, pipeline, reason }: StateAge,
): { readonly text: string; readonly ok: boolean } {
  const bound = 2 * intervalSeconds + pipeline
  const ok = age <= bound
  samples.add(`${prefix}state age at the kill`, 's', age)
  samples.add(`${prefix}state age by 2 x interval + pipeline`, 'ratio', age / bound)
  const text = `${age.toFixed(2)} s old of ${bound.toFixed(2)} allowed${ok ? '' : ' TOO OLD'}, ${reason ?? 'in time'}`
  return { text, ok }
}
