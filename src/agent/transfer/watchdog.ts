import type { Clock } from '../../kube/clock.ts'

export interface Watchdog {
  /** Starts the other side's turn. Each call also counts as a sign of life. */
  watch(): void
  /** Starts our own turn, whose duration does not count against the other side. */
  rest(): void
  stop(): void
}

/** Calls `onSilence` once, when the other side's turn has lasted `ms` without a sign of life. */
export function createWatchdog(options: {
  readonly clock: Clock
  readonly ms: number
  readonly onSilence: () => void
}): Watchdog {
  const { clock, ms, onSilence } = options
  const over = new AbortController()
  let since: number | undefined

  // One timer at a time rather than one per chunk: a gigabyte has many chunks.
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
