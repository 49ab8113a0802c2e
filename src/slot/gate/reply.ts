/** Longest reply including its newline, in bytes: equal to the gate's limit for a request. */
export const replyBytesMax = 128

const pattern = /^understudy\/1 (woken|already|denied|malformed) (\d{1,19})\n$/

export interface GateReply {
  readonly verdict: 'woken' | 'already' | 'denied' | 'malformed'
  /** The gate's own wall clock, nanoseconds since 1970; for `already` the time at which it was woken. */
  readonly atNs: bigint
}

/** Parses a whole reply line, newline included. Undefined if it is anything else. */
export function parseReply(line: string): GateReply | undefined {
  const [, verdict, at] = pattern.exec(line) ?? []
  if (verdict === undefined || at === undefined) return undefined
  return { verdict: verdict as GateReply['verdict'], atNs: BigInt(at) }
}
