import type { Bench } from './bench.ts'
import { checkpoint } from './checkpoint/checkpoint.ts'
import { cost } from './cost/cost.ts'
import { rest } from './cost/rest.ts'
import { drain } from './drain/drain.ts'
import { failover, failoverBasic, failoverCold } from './failover/failover.ts'
import { nodeCut } from './failover/node-cut.ts'
import { leader } from './leader/leader.ts'
import { loadFreeze } from './load/freeze.ts'
import { loadKills } from './load/kills.ts'
import { warmUp } from './load/warm-up.ts'
import { migratingPod } from './migration/migrating-pod.ts'
import { migration } from './migration/migration.ts'
import { paper } from './paper/paper.ts'
import { promotion } from './promotion/promotion.ts'
import { record } from './record/record.ts'
import { scale } from './scale/scale.ts'
import { wake } from './wake/wake.ts'

export const benches: readonly Bench[] = [
  paper,
  wake,
  promotion,
  checkpoint,
  record,
  cost,
  rest,
  failover,
  failoverBasic,
  failoverCold,
  nodeCut,
  migration,
  migratingPod,
  drain,
  leader,
  loadKills,
  loadFreeze,
  warmUp,
  scale,
]
