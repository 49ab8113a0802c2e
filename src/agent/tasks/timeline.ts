import type { Step } from '../../traces/agent.ts'

export interface Timeline {
  mark(phase: string): void
  ms(): Readonly<Record<string, number>>
  seconds(): Readonly<Record<string, number>>
  /** In order, ms from the start. */
  steps(): readonly Step[]
}

export function createTimeline(now: () => number): Timeline {
  const start = now()
  let last = start
  const steps: Step[] = []
  const durations = (of: (ms: number) => number) =>
    Object.fromEntries([
      ...steps.map(step => [step.name, of(step.to - step.from)] as const),
      ['total', of(last - start)] as const,
    ])
  return {
    mark(phase) {
      const at = now()
      steps.push({ name: phase, from: last - start, to: at - start })
      last = at
    },
    ms: () => durations(ms => Math.round(ms * 10) / 10),
    seconds: () => durations(ms => ms / 1000),
    steps: () => steps,
  }
}
