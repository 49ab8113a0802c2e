import type { ClientKind } from '../history.ts'

/** A target of a client, and the time between two calls. */
export interface Target {
  readonly client: ClientKind
  readonly slot: number
  readonly host: string
  readonly port: number
  readonly everyMs: number
}
