export interface Timeline {
  mark(phase: string): void
  ms(): Readonly<Record<string, number>>
  seconds(): Readonly<Record<string, number>>
  /** In order, ms from the start. */
  steps(): readonly Step[]
}

export interface Step {
  readonly name: string
  readonly from: number
  readonly to: number
}

export function createTimeline(now: () => number): Timeline {
  const start = now()
  let last = start
  const phases: [string, number][] = []
  const steps: Step[] = []
  return {
    mark(phase) {
      const at = now()
      phases.push([phase, at - last])
      steps.push({ name: phase, from: last - start, to: at - start })
      last = at
    },
    ms: () =>
      Object.fromEntries(
        [...phases, ['total', last - start] as const].map(([name, ms]) => [name, Math.round(ms * 10) / 10]),
      ),
    seconds: () =>
      Object.fromEntries(
        [...phases, ['total', last - start] as const].map(([name, ms]) => [name, ms / 1000]),
      ),
    steps: () => steps,
  }
}
