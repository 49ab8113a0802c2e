import { fileURLToPath } from 'node:url'
import { compileStatic } from '../../build/compile.ts'
import { labels, type Recipe } from './recipe.ts'

export const counterSource = fileURLToPath(new URL('../counter/counter.c', import.meta.url))

/** An HTTP server with its count in memory, for the samples, benches and traffic tests. */
export const counter: Recipe = async options => ({
  ref: `understudy.invalid/counter:${options.version}`,
  layers: [
    {
      files: [
        {
          type: 'file',
          path: '/counter',
          mode: 0o755,
          content: { source: await compileStatic(counterSource, options) },
        },
      ],
    },
  ],
  config: {
    entrypoint: ['/counter'],
    user: '65532:65532',
    exposedPorts: ['8080/tcp'],
    labels: labels('HTTP counter with its state in memory'),
  },
})
