/** Returns a signal that fires at the first Ctrl-C. @param says what happens then */
export function onInterrupt(says: string): AbortSignal {
  const stop = new AbortController()
  // A second Ctrl-C must not abort the clean-up by accident; the third one does.
  let interrupts = 0
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(name, () => {
      interrupts += 1
      if (interrupts === 1) process.stderr.write(`\ninterrupted: ${says}\n`)
      if (interrupts === 3) process.exit(130)
      stop.abort(new Error(`interrupted by ${name}`))
    })
  return stop.signal
}
