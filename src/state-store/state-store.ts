/**
 * Where things are kept that the operator can do without: history for display, and pulled application state for the time
 * after a restart of the operator. Nothing that is correct may depend on it: every operation may fail, late or at once,
 * and whatever is kept may be gone or old the next time.
 */
export interface StateStore {
  /** What operators that start later find again. False: it is gone with this process. */
  readonly durable: boolean
  /** Undefined: nothing is there. @throws StoreUnavailable. */
  get(key: string): Promise<Uint8Array | undefined>
  /** @throws StoreUnavailable: whether it was written is not known. */
  put(key: string, value: Uint8Array, ttlMs: number): Promise<void>
  /** Lets what is there live on. False: nothing is there. @throws StoreUnavailable. */
  touch(key: string, ttlMs: number): Promise<boolean>
  /** @throws StoreUnavailable. */
  delete(keys: readonly string[]): Promise<void>
  close(): Promise<void>
}

/** The store cannot be reached, or does not answer in time. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable'
}
