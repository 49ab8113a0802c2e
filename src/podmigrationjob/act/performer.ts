/** The capabilities of acts. */
import type { Api } from '../../kube/api-types.ts'
import type { Clock } from '../../kube/clock.ts'
import type { Requests } from './requests.ts'
import type { Tokens } from './tokens.ts'
import type { Writer } from './write-status.ts'

export interface Performer {
  readonly api: Pick<Api, 'get' | 'create' | 'patch' | 'delete' | 'request'>
  readonly writer: Writer
  readonly clock: Pick<Clock, 'now'>
  readonly evictions: Tokens
  readonly requests: Requests
  /** Called after each answer to a request for an eviction. */
  readonly noteEviction: (result: 'accepted' | 'refused' | 'failed') => void
}
