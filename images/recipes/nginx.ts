import { lockedPackages } from '../../build/debian.ts'
import { type Entry, textFile } from '../../build/entry.ts'
import { mergedUsr, takeTree, users, withLibraries } from '../../build/tree.ts'
import { labels, type Recipe } from './recipe.ts'
import { shell } from './shell.ts'

// Same as the upstream image: workers as www-data, logs to the container's own output, port 80.
const configuration = `user www-data;
worker_processes auto;
error_log /dev/stderr notice;
pid /run/nginx.pid;
events {
  worker_connections 1024;
}
http {
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  access_log /dev/stdout;
  sendfile on;
  keepalive_timeout 65;
  include /etc/nginx/conf.d/*.conf;
  server {
    listen 80 default_server;
    listen [::]:80 default_server;
    root /usr/share/nginx/html;
    index index.html;
  }
}
`

/**
 * Debian's nginx under the name `nginx:1.14.2`, so that the example in Kubernetes' documentation applies verbatim on a
 * cluster without a registry. It is not that build, and its labels say so.
 */
export const nginx: Recipe = async options => {
  const tree = await lockedPackages('nginx', options)
  const version = versionOf(tree.packages, 'nginx')
  const files: Entry[] = [
    ...mergedUsr,
    ...(await withLibraries(tree, [{ path: '/usr/sbin/nginx' }])),
    ...(await shell(tree)),
    ...users('www-data', 33),
    ...(await takeTree(tree, '/etc/nginx/mime.types')),
    textFile('/etc/nginx/nginx.conf', configuration),
    { type: 'directory', path: '/etc/nginx/conf.d', mode: 0o755 },
    textFile(
      '/usr/share/nginx/html/index.html',
      `<!DOCTYPE html>\n<title>Welcome to nginx!</title>\n<h1>Welcome to nginx!</h1>\n`,
    ),
    { type: 'directory', path: '/run', mode: 0o755 },
    { type: 'directory', path: '/var/lib/nginx', mode: 0o755 },
    { type: 'directory', path: '/var/log/nginx', mode: 0o755 },
  ]
  return {
    ref: 'nginx:1.14.2',
    layers: [{ files }],
    config: {
      entrypoint: ['/usr/sbin/nginx', '-g', 'daemon off;'],
      exposedPorts: ['80/tcp'],
      stopSignal: 'SIGQUIT',
      labels: labels(`nginx ${version} from Debian, tagged nginx:1.14.2`, {
        'org.opencontainers.image.description':
          'Stand-in for clusters without a registry: NOT the nginx 1.14.2 of Docker Hub',
        'org.opencontainers.image.licenses': 'BSD-2-Clause',
        'org.opencontainers.image.version': version,
      }),
    },
  }
}

/** Returns the Debian version of a package in a tree. */
export function versionOf(packages: readonly string[], name: string): string {
  const found = packages.find(it => it.startsWith(`${name}_`))
  const version = found?.split('_')[1]
  if (version === undefined) throw new Error(`no package ${name} among ${packages.join(', ')}`)
  return version
}
