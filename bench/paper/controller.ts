import { labels } from '../../src/api/labels.ts'
import { type BenchContext, demand } from '../bench.ts'
import { counterTemplate, setOf } from '../objects.ts'
import { type PassLine, passesOver, readLog } from '../observe/operator-log.ts'
import type { Counts } from '../observe/state.ts'
import { operatorNamespace, operatorUser } from '../operator.ts'

/** A controller of BackupPodSets under measurement. */
export interface Controller {
  /** Label selector of a set's pods. */
  podsOf(set: string): string
  /** Returns the object that a user applies. */
  setOf(name: string, counts: Counts): object
  /** Name of the init container in which its cold pods wait; undefined: ours. */
  readonly gate?: string
  /** Its name in the audit log; undefined: its requests are not examined. */
  readonly user?: string
  /** Call before an operation. The returned function lists the passes over that set that have begun since (Unix ms). */
  listen(set: {
    readonly namespace: string
    readonly name: string
  }): Promise<(since: number) => Promise<readonly PassLine[]>>
}

/** The operator of this repository. */
export function ownController({ api, images, operator }: BenchContext): Controller {
  const own = demand(operator, 'the operator')
  return {
    podsOf: set => `${labels.set}=${set}`,
    setOf: (name, counts) => setOf(name, counts, counterTemplate(images.counter, name)),
    user: operatorUser,
    async listen(set) {
      // Remember the name now: the operator may have another leader afterwards.
      const { name } = (await own.leader()).metadata
      return async since => passesOver(await readLog(api, { namespace: operatorNamespace, name }, since), set)
    },
  }
}
