import { Gauge, type Registry } from 'prom-client'

/** Registers a gauge that is always 1, and whose labels name the program and its version: `NAME{component,version}`. */
export function createBuildInfo(
  registry: Registry,
  name: string,
  labels: { readonly component: string; readonly version: string },
): void {
  new Gauge({
    name,
    help: 'Always 1; the labels name the component and its version.',
    labelNames: ['component', 'version'],
    registers: [registry],
  }).set(labels, 1)
}
