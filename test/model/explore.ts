/** Exhaustive search of a model: every state that its steps can reach, in the order of their distance from the first. */

export interface Model<State> {
  readonly first: State
  /** Returns the states that follow, each with the name of the step to it. */
  steps(state: State): readonly (readonly [name: string, state: State])[]
  /** Equal keys: equal states. States that differ only in the names of equal parties may have one key. */
  key(state: State): string
  /** Returns what is wrong in this state. */
  wrong(state: State): string | undefined
}

export interface Explored {
  readonly states: number
  readonly steps: number
  /** The shortest way to a state that is wrong. */
  readonly counterexample: { readonly wrong: string; readonly steps: readonly string[] } | undefined
}

/** The steps that led to a state, the latest first. */
interface Way {
  readonly name: string
  readonly before: Way | undefined
}

export function explore<State>({ first, steps, key, wrong }: Model<State>): Explored {
  const seen = new Set([key(first)])
  let layer: (readonly [State, Way | undefined])[] = [[first, undefined]]
  let count = 0
  while (layer.length > 0) {
    const nextLayer: typeof layer = []
    for (const [state, way] of layer)
      for (const [name, next] of steps(state)) {
        count += 1
        const its = key(next)
        if (seen.has(its)) continue
        seen.add(its)
        const its_ = { name, before: way }
        const problem = wrong(next)
        if (problem !== undefined)
          return { states: seen.size, steps: count, counterexample: { wrong: problem, steps: namesOf(its_) } }
        nextLayer.push([next, its_])
      }
    layer = nextLayer
  }
  return { states: seen.size, steps: count, counterexample: undefined }
}

function namesOf(way: Way | undefined): string[] {
  const names: string[] = []
  for (let at = way; at !== undefined; at = at.before) names.unshift(at.name)
  return names
}
