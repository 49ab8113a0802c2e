/** Rules that an admitted job has to pass again before each act: minutes may lie between the admission and the act. */
import type { ParsedArgs } from '../../api/migration-controller-args.ts'
import type { ParsedJob } from '../../api/parse-pod-migration-job.ts'
import { refusalOf } from './eligible.ts'
import type { Gate, JobView } from './view.ts'
import { failed, type Word } from './word.ts'
import type { World } from './world.ts'

/** The rules as they are now. */
export interface Rules {
  readonly world: Pick<World, 'workloads' | 'pods'>
  /** Gates of the pods of Reservations, by the key of the Reservation. */
  readonly gates?: ReadonlyMap<string, Gate>
  readonly config: ParsedArgs
}

/** Returns how the job ends because a rule refuses its pod now, such as the eviction cost that its owner has set since. */
export function refusedSince({ pod }: JobView, job: ParsedJob, { world, config }: Rules): Word | undefined {
  if (pod === undefined || !config.ok) return undefined
  const refusal = refusalOf(job, pod, world, config.args)
  return refusal === undefined ? undefined : failed('ForbiddenMigratePod', refusal)
}

/** Returns why the act waits although the job is admitted. */
export function beforeAct({ isRolling }: JobView, job: ParsedJob, { config }: Rules): Word | undefined {
  if (job.isPaused) return holds('Paused', 'the job is paused')
  if (!config.ok) return holds('InvalidConfiguration', config.message)
  if (!config.args.isEnabled) return holds('Disabled', 'the configuration has enabled: false')
  if (config.args.dryRun) return holds('DryRun', 'the configuration has dryRun: true')
  if (isRolling && !job.skipGates.has('RollingOut'))
    return holds('RollingOut', 'waits until the workload of the pod has rolled out its change')
  return undefined
}

const holds = (reason: string, message: string): Word => ({ phase: 'Running', reason, message })
