/** The parsed parts of a spec about memory. */
import type { HotBackupMode, HttpHeader, PushMethod, ServiceType } from './backuppodset.ts'

export interface ParsedMemory {
  readonly mode: Exclude<HotBackupMode, 'Warm'>
  readonly intervalMs: number
  readonly maxFreezePercent: number
  /** Names of the containers whose memory is saved, in the template's order. */
  readonly containers: readonly string[]
  readonly copies: number
  /** Holders are only nodes where the template may run. */
  readonly matchingHolders: boolean
  readonly keep: number
  /** After this time a slot whose memory is kept but cannot be restored begins a new incarnation. Undefined: never. */
  readonly giveUpAfterMs: number | undefined
  /** How long to keep the memory of a slot for which the set has become too small. 0: not at all. */
  readonly retainMs: number
  /** Generations may be written to disks, encrypted. */
  readonly disk: boolean
  /** Its primaries leave a node that is drained with their memory. */
  readonly movesOnDrain: boolean
  /** Limit in bytes for emptyDirs and writable layers together. */
  readonly volumeBytes: number
}

/** How to pull the app's own state from primaries and push it to successors. */
export interface ParsedPull {
  readonly intervalMs: number
  readonly port: number
  readonly path: string
  readonly headers: readonly HttpHeader[]
  readonly maxBytes: number
  readonly timeoutMs: number
  readonly restoreMs: number
  readonly push: {
    readonly path: string
    readonly method: PushMethod
    readonly headers: readonly HttpHeader[]
    /** Push each pulled state also to running hot backups. */
    readonly everyInterval: boolean
  }
  /** The container whose restart loses the state: the one with the port, else the first. */
  readonly container: string
}

export interface ParsedService {
  readonly name: string | undefined
  readonly ports: readonly {
    readonly name: string | undefined
    readonly port: number
    readonly targetPort: number
    readonly protocol: 'TCP' | 'UDP'
  }[]
  readonly perSlot: boolean
  readonly type: ServiceType
}

export interface ParsedLiveness {
  readonly periodMs: number
  readonly failureThreshold: number
}

const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const

/** Returns the milliseconds of a duration such as `1m30s` or `500ms`; undefined if it is invalid. */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(text)) return undefined
  let ms = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g))
    ms += Number(amount) * units[unit as keyof typeof units]
  return ms
}

const suffixes: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
}

/** Returns the bytes of a quantity such as `512Mi`; undefined if it is invalid. */
export function parseBytes(text: string): number | undefined {
  const [, amount, suffix = ''] = /^(\d+(?:\.\d+)?)([kMGT]|[KMGT]i)?$/.exec(text) ?? []
  const factor = suffixes[suffix]
  return amount === undefined || factor === undefined ? undefined : Math.ceil(Number(amount) * factor)
}
