/** The names of our own metrics. Metrics of the controller kit have the names that controller-runtime and client-go use. */

/** Prometheus asks for one prefix for each program, so that a search for it finds all of them. */
export const metricPrefix = 'understudy_'

/** @param name without the prefix, with the unit and `_total` as Prometheus' conventions want them. */
export const metricName = <const Name extends string>(name: Name): `${typeof metricPrefix}${Name}` =>
  `${metricPrefix}${name}`

/**
 * Labels of metrics that belong to one set. `namespace` is that of the set: let Prometheus keep it (`honorLabels`). Metrics of agents
 * have no such labels, because any client that reaches a node can read them.
 */
export const setLabels = ['namespace', 'set'] as const
export type SetLabels = Readonly<Record<(typeof setLabels)[number], string>>

export const setLabelsOf = ({ namespace, name }: { readonly namespace: string; readonly name: string }) =>
  ({ namespace, set: name }) satisfies SetLabels

/** For what belongs to a set that no metric names. Prometheus takes an empty label for none. */
export const unnamedSet: SetLabels = { namespace: '', set: '' }
