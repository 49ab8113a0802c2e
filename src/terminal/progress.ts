import { styleText } from 'node:util'
import { type Live, type Output, openLive } from './live.ts'

/** Reports on a step while it runs. */
export interface Step {
  /** Replaces the text behind the step's title, such as the package being compiled. */
  detail(text: string): void
  /** Tells how much is done of how much. The remaining time is estimated from that. */
  of(done: number, total: number): void
  /** Tells how long the step takes, as far as is known. */
  expect(seconds: number): void
}

/** Reports every step of a long operation. Steps may run at the same time. */
export interface Progress {
  step<T>(title: string, work: (step: Step) => Promise<T>): Promise<T>
  /** Shows something only while it takes more than a second, and leaves no line. */
  wait<T>(title: string, work: () => Promise<T>): Promise<T>
}

export interface ProgressDisplay extends Progress {
  /** Prints a line that stays, above the running steps. */
  log(line: string): void
}

/** Prints nothing: for tests and for callers with their own output. */
export const silent: Progress = {
  step: (_title, work) => work({ detail: () => {}, of: () => {}, expect: () => {} }),
  wait: (_title, work) => work(),
}

interface Running {
  readonly title: string
  readonly started: number
  detail: string
  share?: { readonly done: number; readonly total: number }
  expectedMs?: number
}

/** When the output is not a terminal, steps that take longer than this are announced. */
const announceAfterMs = 5_000
/** Waits that take longer than this are shown. */
const shownAfterMs = 1_000

export interface ProgressOptions {
  /** Milliseconds. */
  readonly now?: () => number
  /** Default: only on a terminal, and only if the environment does not have NO_COLOR. */
  readonly colour?: boolean
}

/**
 * Creates the progress display. On a terminal it shows running steps live, with their elapsed time, below the finished
 * ones. Otherwise it prints one plain line for each finished step, and one for a long step under way.
 */
export function createProgress(
  output: Output,
  {
    now = () => performance.now(),
    colour = output.isTTY === true && process.env['NO_COLOR'] === undefined,
  }: ProgressOptions = {},
): ProgressDisplay {
  const isLive = output.isTTY === true
  const paint = (style: 'green' | 'red' | 'yellow' | 'dim', text: string): string =>
    colour ? styleText(style, text, { validateStream: false }) : text
  const marks = isLive
    ? { running: paint('yellow', '•'), done: paint('green', '✔'), failed: paint('red', '✘') }
    : { running: '...', done: 'ok ', failed: 'NO ' }
  const line = (mark: string, { title, started, detail }: Running): string =>
    `${mark} ${title.padEnd(44)} ${elapsed(now() - started)}${detail === '' ? '' : `  ${detail}`}`
  const lineOfRunning = (step: Running): string =>
    line(marks.running, {
      ...step,
      detail: paint('dim', [remaining(step, now()), step.detail].filter(Boolean).join('  ')),
    })

  const running = new Set<Running>()
  // Open while steps run: without them nothing is left to redraw.
  let live: Live | undefined
  const frame = (): string[] => (isLive ? [...running].map(lineOfRunning) : [])
  const leave = (step: Running): void => {
    running.delete(step)
    if (running.size > 0) return
    live?.[Symbol.dispose]()
    live = undefined
  }
  const announcement = (step: Running): string => {
    const left = remaining(step, now())
    return `${marks.running} ${step.title}${left === '' ? '' : `  ${left}`}`
  }
  return {
    async step(title, work) {
      const step: Running = { title, started: now(), detail: '' }
      running.add(step)
      live ??= openLive(output, frame)
      const announce = isLive
        ? undefined
        : setTimeout(() => output.write(`${announcement(step)}\n`), announceAfterMs)
      const close = (mark: string): void => {
        clearTimeout(announce)
        running.delete(step)
        live?.log(line(mark, step))
        leave(step)
      }
      try {
        const result = await work({
          detail: text => {
            step.detail = text
          },
          of: (done, total) => {
            step.share = { done, total }
          },
          expect: seconds => {
            step.expectedMs = seconds * 1000
          },
        })
        close(marks.done)
        return result
      } catch (error) {
        close(marks.failed)
        throw error
      }
    },
    async wait(title, work) {
      if (!isLive) return work()
      const step: Running = { title, started: now(), detail: '' }
      const shown = setTimeout(() => {
        running.add(step)
        live ??= openLive(output, frame)
      }, shownAfterMs)
      try {
        return await work()
      } finally {
        clearTimeout(shown)
        leave(step)
      }
    },
    log(text) {
      if (live === undefined) output.write(`${text}\n`)
      else live.log(text)
    },
  }
}

/** `3 of 10, about 20 s left`: what is known about the rest of a step. */
function remaining({ started, share, expectedMs }: Running, now: number): string {
  const spent = now - started
  const rest =
    share !== undefined && share.done > 0
      ? (spent / share.done) * (share.total - share.done)
      : expectedMs === undefined
        ? undefined
        : expectedMs - spent
  return [
    ...(share === undefined ? [] : [`${share.done} of ${share.total}`]),
    // An estimate that has run out says nothing.
    ...(rest === undefined || rest < 500 ? [] : [`about ${elapsed(rest).trim()} left`]),
  ].join(', ')
}

/** `  0.4 s`, ` 12.0 s`, `4 m 25 s`. */
export function elapsed(ms: number): string {
  const seconds = ms / 1000
  if (seconds < 60) return `${seconds.toFixed(1)} s`.padStart(8)
  return `${Math.floor(seconds / 60)} m ${String(Math.floor(seconds % 60)).padStart(2, '0')} s`.padStart(8)
}
