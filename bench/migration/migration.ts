import type { Bench } from '../bench.ts'
import { redis } from '../checkpoint/subjects.ts'
import { inNamespace } from '../namespace.ts'
import { baselinesOf, ofDeployment } from './deployment.ts'
import { byMigration, type Moving, moveTrials } from './move.ts'

/** `published`: the downtime that the published system reports for a state of that size, s. */
const sizes = [
  { size: '3MB', bytes: 0, interval: '1s', published: 2.1 },
  { size: '200MB', bytes: 200e6, interval: '1s', published: 2.0 },
  // Two processors cannot save a gigabyte each second, and copy it to two nodes.
  { size: '1GB', bytes: 1e9, interval: '5s', published: 4.0 },
] as const

const writesPerSecond = 1_000

export const migration: Bench = {
  name: 'migration',
  title:
    'a redis of 3 MB to 1 GB moves to another node with its memory, at rest and under writes; beside a Deployment',
  trials: 10,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    const cases: (Moving & { readonly published: number })[] = sizes.flatMap(
      ({ size, bytes, interval, published }) => [
        { name: `${size} at rest`, published, subject: redis(size, bytes, { interval }) },
        ...(bytes === 0
          ? []
          : [
              {
                name: `${size}, 1,000 writes/s`,
                published,
                subject: redis(size, bytes, { interval, writesPerSecond }),
              },
            ]),
      ],
    )
    await inNamespace(context.api, 'bench-migration', context.signal, namespace =>
      ofDeployment(context, namespace, samples),
    )
    for (const it of cases)
      await inNamespace(context.api, 'bench-migration', context.signal, namespace =>
        moveTrials(context, namespace, it, byMigration, samples),
      )
    return samples.report('migration', baselinesOf(cases))
  },
}
