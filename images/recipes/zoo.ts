import { fileURLToPath } from 'node:url'
import { compileStatic } from '../../build/compile.ts'
import { lockedPackages } from '../../build/debian.ts'
import type { Entry } from '../../build/entry.ts'
import { goProgram } from '../../build/go.ts'
import { strippedNode } from '../../build/node-binary.ts'
import { mergedUsr, takeTree, users, withLibraries } from '../../build/tree.ts'
import { versionOf } from './nginx.ts'
import { labels, type Recipe } from './recipe.ts'
import { shell } from './shell.ts'

const program = (name: string): string => fileURLToPath(new URL(`../zoo/${name}`, import.meta.url))

const modules = ['ndk_http_module', 'ngx_http_lua_module'].map(name => `/usr/lib/nginx/modules/${name}.so`)

/** Programs of several runtimes whose memory tests and benches move; a pod selects one by its command. */
export const zoo: Recipe = async options => {
  const tree = await lockedPackages('zoo', options)
  const python = `python${/^(\d+\.\d+)/.exec(versionOf(tree.packages, 'python3-minimal'))?.[1]}`
  const executable = (name: string, source: string): Entry => ({
    type: 'file',
    path: `/zoo/${name}`,
    mode: 0o755,
    content: { source },
  })
  const script = (name: string, source = name): Entry => executable(name, program(source))
  const library = await takeTree(tree, `/usr/lib/${python}`)
  return {
    ref: `understudy.invalid/zoo:${options.version}`,
    layers: [
      {
        files: [
          ...mergedUsr,
          ...(await withLibraries(tree, [
            { path: '/usr/bin/node', source: await strippedNode(options) },
            { path: '/usr/bin/python3', source: `${tree.root}/usr/bin/${python}` },
            { path: '/usr/sbin/nginx' },
            ...modules.map(path => ({ path })),
            // Libraries that the standard library's own modules need, beyond the interpreter's.
            ...library.flatMap(({ path }) => (path.endsWith('.so') ? [{ path }] : [])),
          ])),
          ...library.filter(({ path }) => !path.endsWith('.so')),
          // nginx's Lua module needs these.
          ...(await takeTree(tree, '/usr/share/lua/5.1')),
          { type: 'directory', path: '/run', mode: 0o755 },
          { type: 'directory', path: '/var/lib/nginx', mode: 0o755 },
          { type: 'directory', path: '/var/log/nginx', mode: 0o755 },
          ...(await shell(tree)),
          ...users('zoo', 1000),
        ],
      },
      {
        files: [
          { type: 'directory', path: '/zoo', mode: 0o755 },
          script('server.mjs'),
          script('server.py'),
          script('nginx.conf', 'nginx/nginx.conf'),
          executable('prefork', await compileStatic(program('prefork.c'), options)),
          executable('kinds', await compileStatic(program('kinds.c'), options)),
          executable('counter', await goProgram('counter', program('go'), options)),
        ],
      },
    ],
    config: {
      env: ['PATH=/usr/bin'],
      cmd: ['/usr/bin/node', '/zoo/server.mjs'],
      workingDir: '/zoo',
      exposedPorts: ['8080/tcp'],
      labels: labels('Servers of several runtimes with their state in memory'),
    },
  }
}
