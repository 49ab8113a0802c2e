import type { Clock } from '../../kube/clock.ts'

export interface Watchdog {
  /** It is the other side's turn from now on. Each call is a sign of life, too. */
  watch(): void
  /** It is our own turn: however long that takes, it is not held against the other side. */
  rest(): void
  stop(): void
}

/** Calls `onSilence`, once, when the other side has had its turn for `ms` without a sign of life. */
export function createWatchdog(options: {
  readonly clock: Clock
  readonly ms: number
  readonly onSilence: () => void
}): Watchdog {
  const { clock, ms, onSilence } = options
  const over = new AbortController()
  let since: number | undefined

  // One timer at a time, and none for each chunk: a gigabyte has many.
  const guard = async () => {
    for (;;) {
      const left = since === undefined ? ms : since + ms - clock.monotonic()
      if (left <= 0) return onSilence()
      await clock.sleep(left, over.signal)
    }
  }
  guard().catch(() => {
    // Stopped.
  })

  return {
    watch: () => {
      since = clock.monotonic()
    },
    rest: () => {
      since = undefined
    },
    stop: () => over.abort(),
  }
}
