import type { ClientKind } from '../history.ts'

/** What a client asks, and how often. */
export interface Target {
  readonly client: ClientKind
  readonly slot: number
  readonly host: string
  readonly port: number
  readonly everyMs: number
}
