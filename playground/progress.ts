/** Reports on a step while it runs. */
export interface Step {
  /** Replaces the text behind the step's title, such as the package being compiled. */
  detail(text: string): void
}

/** Reports every step of a long operation. Steps may run at the same time. */
export interface Progress {
  step<T>(title: string, work: (step: Step) => Promise<T>): Promise<T>
}

/** Prints nothing: for tests and for callers with their own output. */
export const silent: Progress = {
  step: (_title, work) => work({ detail: () => {} }),
}

export interface ProgressOutput {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  write(text: string): unknown
}

interface Running {
  readonly title: string
  readonly started: number
  detail: string
}

/** When the output is not a terminal, steps that take longer than this are announced. */
const ANNOUNCE_AFTER_MS = 5_000

/**
 * Creates the progress display. On a terminal it shows running steps live, with their elapsed time, below the finished
 * ones. Otherwise it prints one plain line for each finished step, and one for a long step under way.
 */
export function createProgress(
  output: ProgressOutput,
  now: () => number = () => performance.now(),
): Progress {
  return output.isTTY === true ? liveProgress(output, now) : plainProgress(output, now)
}

function plainProgress(output: ProgressOutput, now: () => number): Progress {
  return {
    async step(title, work) {
      const started = now()
      let detail = ''
      const announce = setTimeout(() => output.write(`... ${title}\n`), ANNOUNCE_AFTER_MS)
      const close = (mark: string): void => {
        clearTimeout(announce)
        output.write(finished(mark, title, now() - started, detail))
      }
      try {
        const result = await work({
          detail: text => {
            detail = text
          },
        })
        close('ok ')
        return result
      } catch (error) {
        close('NO ')
        throw error
      }
    },
  }
}

function liveProgress(output: ProgressOutput, now: () => number): Progress {
  const running = new Set<Running>()
  let shown = 0
  const draw = (above = ''): void => {
    const width = (output.columns ?? 80) - 1
    const lines = [...running].map(it =>
      `\u001b[33m•\u001b[0m ${pad(it.title)} ${elapsed(now() - it.started)}  \u001b[2m${it.detail}`.slice(
        0,
        width + 12,
      ),
    )
    const back = shown > 0 ? `\u001b[${shown}A` : ''
    output.write(`${back}\r\u001b[J${above}${lines.map(line => `${line}\u001b[0m\n`).join('')}`)
    shown = lines.length
  }
  let timer: NodeJS.Timeout | undefined
  return {
    async step(title, work) {
      const entry: Running = { title, started: now(), detail: '' }
      running.add(entry)
      timer ??= setInterval(draw, 100)
      const close = (mark: string): void => {
        running.delete(entry)
        draw(finished(mark, title, now() - entry.started, entry.detail))
        if (running.size > 0) return
        clearInterval(timer)
        timer = undefined
      }
      try {
        const result = await work({
          detail: text => {
            entry.detail = text
          },
        })
        close('\u001b[32m✔\u001b[0m')
        return result
      } catch (error) {
        close('\u001b[31m✘\u001b[0m')
        throw error
      }
    },
  }
}

function finished(mark: string, title: string, ms: number, detail: string): string {
  return `${mark} ${pad(title)} ${elapsed(ms)}${detail === '' ? '' : `  ${detail}`}\n`
}

function pad(title: string): string {
  return title.padEnd(44)
}

/** `  0.4 s`, ` 12.0 s`, `4 m 25 s`. */
export function elapsed(ms: number): string {
  const seconds = ms / 1000
  if (seconds < 60) return `${seconds.toFixed(1)} s`.padStart(8)
  return `${Math.floor(seconds / 60)} m ${String(Math.floor(seconds % 60)).padStart(2, '0')} s`.padStart(8)
}
