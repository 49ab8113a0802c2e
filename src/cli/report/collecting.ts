/** How a part of the bundle tells that it could not be read, and how far the work is. */
export interface Collecting {
  fail(what: string): (error: unknown) => undefined
  of(done: number, total: number): void
}
