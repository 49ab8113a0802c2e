/**
 * Store for data that the operator can do without: history for display, and pulled application state for the time after
 * a restart of the operator. Correctness must not depend on it: every operation may fail, late or at once, and entries
 * may be gone or old at the next access.
 */
export interface StateStore {
  /** Whether later operators find the entries. False: they are lost with this process. */
  readonly durable: boolean
  /** Undefined: there is no entry. @throws StoreUnavailable. */
  get(key: string): Promise<Uint8Array | undefined>
  /** @throws StoreUnavailable: the value may or may not have been written. */
  put(key: string, value: Uint8Array, ttlMs: number): Promise<void>
  /** Extends the life of an entry. False: there is none. @throws StoreUnavailable. */
  touch(key: string, ttlMs: number): Promise<boolean>
  /** @throws StoreUnavailable. */
  delete(keys: readonly string[]): Promise<void>
  close(): Promise<void>
}

/** The store cannot be reached or does not answer in time. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}
