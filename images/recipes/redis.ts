import { lockedPackages } from '../../build/debian.ts'
import { mergedUsr, users, withLibraries } from '../../build/tree.ts'
import { versionOf } from './nginx.ts'
import { labels, type Recipe } from './recipe.ts'
import { shell } from './shell.ts'

/** Debian's redis-server without persistence: its data is only in memory. */
export const redis: Recipe = async options => {
  const tree = await lockedPackages('redis', options)
  const version = versionOf(tree.packages, 'redis-server')
  const minor = /^(?:\d+:)?(\d+\.\d+)/.exec(version)?.[1]
  return {
    ref: `understudy.invalid/redis:${minor}`,
    layers: [
      {
        files: [
          ...mergedUsr,
          // In the package, redis-server is a link to redis-check-rdb; the image has a real file of that name.
          ...(await withLibraries(tree, [{ path: '/usr/bin/redis-server' }, { path: '/usr/bin/redis-cli' }])),
          ...(await shell(tree)),
          ...users('redis', 999),
          { type: 'directory', path: '/data', mode: 0o755, uid: 999, gid: 999 },
        ],
      },
    ],
    config: {
      entrypoint: ['/usr/bin/redis-server'],
      cmd: ['--save', '', '--appendonly', 'no', '--protected-mode', 'no'],
      user: '999:999',
      workingDir: '/data',
      exposedPorts: ['6379/tcp'],
      // As in the official image.
      volumes: ['/data'],
      labels: labels(`Redis ${version} from Debian, without persistence`, {
        'org.opencontainers.image.version': version,
      }),
    },
  }
}
