/** A controller with a queue, on a clock that the test moves; it notes its log lines and counts. */
import { createFakeClock } from '../clock.ts'
import { type ControllerMetrics, type ControllerOptions, createController } from '../controller.ts'
import type { Log } from '../log.ts'
import { createQueue } from '../queue.ts'
import { seededRandom } from '../random.ts'
import type { Reconcile } from '../reconcile.ts'

/** Lets everything run that does not wait for the clock. */
export const settle = () => new Promise<void>(resolve => setImmediate(resolve))

export const makeController = (reconcile: Reconcile, options: Partial<ControllerOptions> = {}) => {
  const clock = createFakeClock()
  const queue = createQueue({ clock, name: 'test' })
  const lines: { level: string; fields: Readonly<Record<string, unknown>>; message: string }[] = []
  const write = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) => {
    lines.push({ level, fields, message })
  }
  const log: Log = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
  }
  const counts: Record<string, number> = {}
  const count = (name: string, by = 1) => {
    counts[name] = (counts[name] ?? 0) + by
  }
  const metrics: ControllerMetrics = {
    controller: (_, workers) => count('workers', workers),
    reconciled: (_, result) => count(result),
    failed: (_, kind) => count(`failed ${kind}`),
    active: (_, delta) => count('active', delta),
  }
  const controller = createController({
    name: 'test',
    queue,
    reconcile,
    log,
    clock,
    random: seededRandom(1),
    metrics,
    ...options,
  })
  const stop = new AbortController()
  return { clock, queue, lines, counts, controller, stop }
}
