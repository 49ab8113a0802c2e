/** Unix time in ms with the resolution of the monotonic clock: comparable with the time stamps of other processes. */
export interface UnixClock {
  now(): number
  /**
   * Waits for the next turn of the wall clock's millisecond and counts from there. The two clocks drift apart when the
   * machine's time is being adjusted, so this is done before each trial.
   */
  anchor(): void
}

export function createUnixClock(): UnixClock {
  let offset = 0
  const anchor = () => {
    const before = Date.now()
    let now = before
    while (now === before) now = Date.now()
    offset = now - performance.now()
  }
  anchor()
  return { now: () => performance.now() + offset, anchor }
}
