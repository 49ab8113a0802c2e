/** The controllers of Migrations and drains, composed as in the real operator. */
import { createDrainController } from '../../../src/drain/controller.ts'
import type { Api } from '../../../src/kube/api-types.ts'
import type { Clock } from '../../../src/kube/clock.ts'
import type { Log } from '../../../src/kube/log.ts'
import { createQueue } from '../../../src/kube/queue.ts'
import type { Random } from '../../../src/kube/random.ts'
import { defaultBudgets } from '../../../src/migration/budgets.ts'
import { createMigrationController } from '../../../src/migration/controller.ts'
import type { createCaches } from '../../../src/operator/caches.ts'

export interface MoversOptions {
  readonly caches: ReturnType<typeof createCaches>
  readonly api: Api
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

export interface Movers {
  run(stop: AbortSignal, lost: AbortSignal): Promise<void>
  close(): void
}

export function createMovers({
  caches: { stores, missingForMemory },
  api,
  clock,
  random,
  log,
}: MoversOptions): Movers {
  const ofMigrations = createQueue({ clock, name: 'migration', random })
  const ofDrains = createQueue({ clock, name: 'drain', random })
  const recorder = { record: () => undefined, flush: async () => 0, close: () => {} }
  const shared = { ...stores, api, recorder, clock, random, log }
  const isMissing = () => missingForMemory().length > 0
  const controllers = [
    createMigrationController({
      ...{ ...shared, isMissing, queue: ofMigrations, budgets: defaultBudgets },
      metrics: { ended: () => undefined },
    }),
    createDrainController({
      ...shared,
      isMissing: () => isMissing() || !stores.migrations.hasSynced(),
      queue: ofDrains,
    }),
  ]
  return {
    async run(stop, lost) {
      await Promise.all(controllers.map(each => each.run(stop, lost)))
    },
    close() {
      ofMigrations.shutdown()
      ofDrains.shutdown()
    },
  }
}
