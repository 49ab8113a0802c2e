/** Returns the labels of a metric of prom-client, whose types leave them out. @throws Error if it has no such field. */
export function labelNamesOf(metric: { readonly name: string }): readonly string[] {
  const names: unknown = 'labelNames' in metric ? metric.labelNames : undefined
  if (!Array.isArray(names)) throw new Error(`prom-client does not say the labels of ${metric.name}`)
  return names.map(String)
}
