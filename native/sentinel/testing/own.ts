import { onTestFinished } from 'vitest'

/** The end of the test disposes of it, also if that is a time-out: nothing stays stopped. */
export function own<T extends Partial<Disposable & AsyncDisposable>>(it: T): T {
  onTestFinished(async () => {
    it[Symbol.dispose]?.()
    await it[Symbol.asyncDispose]?.()
  })
  return it
}
