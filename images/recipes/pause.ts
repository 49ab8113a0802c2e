import { fileURLToPath } from 'node:url'
import { compileStatic } from '../../build/compile.ts'
import { labels, type Recipe } from './recipe.ts'

/** The pod sandbox: one static binary. */
export const pause: Recipe = async options => ({
  ref: `understudy.invalid/pause:${options.version}`,
  layers: [
    {
      files: [
        {
          type: 'file',
          path: '/pause',
          mode: 0o755,
          content: {
            source: await compileStatic(fileURLToPath(new URL('../pause/pause.c', import.meta.url)), options),
          },
        },
      ],
    },
  ],
  config: { entrypoint: ['/pause'], user: '65535:65535', labels: labels('pod sandbox') },
})
