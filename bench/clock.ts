/** Unix time in ms with the resolution of the monotonic clock, comparable with the time stamps of other processes. */
export interface UnixClock {
  now(): number
  /**
   * Waits for the wall clock's next millisecond and counts from there. Call before each trial: the two clocks drift
   * apart while the machine's time is being adjusted.
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
