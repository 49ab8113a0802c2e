import { buildWaker } from '../../init-waker/build.ts'
import type { ImageConfig } from '../archive.ts'
import { labels, type Recipe } from './recipe.ts'

/** The gate of cold backups: one static binary and no other program. */
export const waker: Recipe = async options => ({
  ref: `understudy.invalid/waker:${options.version}`,
  layers: [
    {
      files: [{ type: 'file', path: '/waker', mode: 0o755, content: { source: await buildWaker(options) } }],
    },
  ],
  config: wakerConfig(options.version),
})

/** Configuration for the runtime; deploy/docker/waker.Dockerfile says the same. */
export function wakerConfig(version: string): ImageConfig {
  return {
    entrypoint: ['/waker'],
    env: ['PATH=/'],
    user: '65532:65532',
    workingDir: '/',
    exposedPorts: ['20000/tcp'],
    labels: labels('Understudy waker', { 'org.opencontainers.image.version': version }),
  }
}
