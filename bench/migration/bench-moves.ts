import { withRecord } from '../agents.ts'
import type { Bench } from '../bench.ts'
import { inNamespace } from '../namespace.ts'
import { baselinesOf, ofDeployment } from './deployment.ts'
import { moveTrials, type Trigger } from './move.ts'
import { type Case, casesOf, recordedOf } from './sizes.ts'

export interface Moves extends Pick<Bench, 'name' | 'title'> {
  /** GB, unless the command says others. */
  readonly sizes: readonly number[]
  /** Whether each size moves under writes, too. */
  readonly writes: boolean
  readonly trigger: Trigger
}

/** Returns a bench of a Deployment, and of moves of each size; of the larger ones also with agents that record writes. */
export const benchOfMoves = ({ name, title, sizes: standard, writes, trigger }: Moves): Bench => ({
  ...{ name, title, trials: 10, needs: ['operator', 'playground'] },
  run: async (context, samples) => {
    const sizes = context.sizes ?? standard
    const cases = sizes.flatMap(size => casesOf(size, { writes }))
    const recorded = recordedOf(sizes, { writes })
    const inOwn = (work: (namespace: string) => Promise<void>) =>
      inNamespace(context.api, `bench-${name}`, context.signal, work)
    await inOwn(namespace => ofDeployment(context, namespace, samples))
    const moveAll = async (all: readonly Case[]) => {
      for (const it of all) await inOwn(namespace => moveTrials(context, namespace, it, trigger, samples))
    }
    await moveAll(cases)
    if (recorded.length > 0) await withRecord(context, 'Moves', () => moveAll(recorded))
    return samples.report(name, baselinesOf([...cases, ...recorded]))
  },
})
