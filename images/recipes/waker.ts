import { buildWaker } from '../../init-waker/build.ts'
import { users } from '../tree.ts'
import { labels, type Recipe } from './recipe.ts'

/** The gate of cold backups: one static binary and nothing else to run. */
export const waker: Recipe = async options => ({
  ref: `understudy/waker:${options.version}`,
  layers: [
    {
      files: [
        { type: 'file', path: '/waker', mode: 0o755, content: { source: await buildWaker(options) } },
        ...users('nonroot', 65532),
      ],
    },
  ],
  config: {
    entrypoint: ['/waker'],
    env: ['PATH=/'],
    user: '65532:65532',
    exposedPorts: ['20000/tcp'],
    labels: labels('Understudy waker', { 'org.opencontainers.image.version': options.version }),
  },
})
