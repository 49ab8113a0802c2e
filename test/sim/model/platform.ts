/** The platform of a cluster: a time, and an API server with connections to it. */
import type { Api } from '../../../src/kube/api-types.ts'
import type { Random } from '../../../src/kube/random.ts'
import { createApiServer, type Objects } from '../../../src/kube/testing/api-server.ts'
import type { TraceSink } from '../../../src/traces/span.ts'
import { createNetworkApi, type Link, statusKinds } from './network.ts'
import { createVirtualTime, type Party, type VirtualTime } from './virtual-time.ts'

export interface Way {
  readonly party: Party
  readonly link: Link
  readonly random: Random
}

export interface Platform {
  readonly time: VirtualTime
  readonly server: Objects
  /** Returns the API as this process reaches it. */
  readonly apiOf: (way: Way) => Api
  /** How many times longer than in the model everything may take. */
  readonly slack: number
  /** Returns the sink for the traces of a process; absent: none makes traces. */
  readonly traceOf?: (process: string) => TraceSink
}

/** A platform that is entirely in memory. */
export function modelPlatform(): Platform {
  const time = createVirtualTime()
  const server = createApiServer(() => time.epoch + time.now(), statusKinds)
  return { time, server, slack: 1, apiOf: way => createNetworkApi({ server, time, ...way }) }
}
