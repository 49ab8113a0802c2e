/** Longest reply with its newline, in bytes: as much as the gate allows a request. */
export const replyBytesMax = 128

const pattern = /^understudy\/1 (woken|already|denied|malformed) (\d{1,19})\n$/

export interface GateReply {
  readonly verdict: 'woken' | 'already' | 'denied' | 'malformed'
  /** The gate's own wall clock, nanoseconds since 1970; for `already` the time at which it was woken. */
  readonly atNs: bigint
}

/** Reads a whole reply line, newline included. Undefined if it is anything else. */
export function parseReply(line: string): GateReply | undefined {
  const [, verdict, at] = pattern.exec(line) ?? []
  if (verdict === undefined || at === undefined) return undefined
  return { verdict: verdict as GateReply['verdict'], atNs: BigInt(at) }
}
