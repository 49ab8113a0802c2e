/**
 * Numbers of Linux signals, the same on amd64 and arm64. Programs see SIGRTMIN as 34, since the C library reserves two
 * signals.
 */
const numbers: Readonly<Record<string, number>> = Object.fromEntries(
  [
    'HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU',
    'URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS',
  ]
    .join(' ')
    .split(' ')
    .map((name, index) => [`SIG${name}`, index + 1]),
)
const aliases: Readonly<Record<string, string>> = { SIGIOT: 'SIGABRT', SIGCLD: 'SIGCHLD', SIGPOLL: 'SIGIO' }
const realTime = { SIGRTMIN: 34, SIGRTMAX: 64 }

/**
 * Returns the number of a signal in `lifecycle.stopSignal` (`SIGUSR1`, `SIGRTMIN+3`); undefined if it is absent or
 * unknown.
 */
export function signalNumber(name: string | undefined): number | undefined {
  const [, base, offset] = /^(SIGRTMIN|SIGRTMAX)([+-]\d{1,2})?$/.exec(name ?? '') ?? []
  if (base !== undefined) {
    const number = realTime[base as keyof typeof realTime] + Number(offset ?? 0)
    return number >= realTime.SIGRTMIN && number <= realTime.SIGRTMAX ? number : undefined
  }
  return name === undefined ? undefined : numbers[aliases[name] ?? name]
}
