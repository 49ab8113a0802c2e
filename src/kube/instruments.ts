/** Instruments of prom-client, registered where they are made. */
import { Counter, Gauge, type Registry } from 'prom-client'

export function counter<const L extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly L[],
): Counter<L> {
  return new Counter({ name, help, labelNames, registers: [registry] })
}

/** A gauge whose values are read at each scrape. */
export function scraped<const L extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly L[],
  collect: (set: (labels: Partial<Record<L, string>>, value: number) => void) => void,
): void {
  new Gauge({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      collect((labels, value) => this.set(labels, value))
    },
  })
}
