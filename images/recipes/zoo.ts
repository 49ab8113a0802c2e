import { fileURLToPath } from 'node:url'
import { compileStatic } from '../compile.ts'
import { debianPackages } from '../debian.ts'
import type { Entry } from '../entry.ts'
import { strippedNode } from '../node-binary.ts'
import { mergedUsr, takeTree, users, withLibraries } from '../tree.ts'
import { versionOf } from './nginx.ts'
import { labels, type Recipe } from './recipe.ts'
import { shell } from './shell.ts'

const program = (name: string): string => fileURLToPath(new URL(`../zoo/${name}`, import.meta.url))

/** Programs of several runtimes whose memory is moved in tests and benches; a pod says which by its command. */
export const zoo: Recipe = async options => {
  const tree = await debianPackages(
    ['busybox-static', 'libgcc-s1', 'libpython3-stdlib', 'libstdc++6', 'python3-minimal'],
    options,
  )
  const python = `python${/^(\d+\.\d+)/.exec(versionOf(tree.packages, 'python3-minimal'))?.[1]}`
  const script = (name: string): Entry => ({
    type: 'file',
    path: `/zoo/${name}`,
    mode: 0o755,
    content: { source: program(name) },
  })
  const library = await takeTree(tree, `/usr/lib/${python}`)
  return {
    ref: `understudy/zoo:${options.version}`,
    layers: [
      {
        files: [
          ...mergedUsr,
          ...(await withLibraries(tree, [
            { path: '/usr/bin/node', source: await strippedNode(options) },
            { path: '/usr/bin/python3', source: `${tree.root}/usr/bin/${python}` },
            // What the standard library's own modules are linked to, beyond the interpreter's libraries.
            ...library.flatMap(({ path }) => (path.endsWith('.so') ? [{ path }] : [])),
          ])),
          ...library.filter(({ path }) => !path.endsWith('.so')),
          ...(await shell(tree)),
          ...users('zoo', 1000),
        ],
      },
      {
        files: [
          { type: 'directory', path: '/zoo', mode: 0o755 },
          script('server.mjs'),
          script('server.py'),
          {
            type: 'file',
            path: '/zoo/prefork',
            mode: 0o755,
            content: { source: await compileStatic(program('prefork.c'), options) },
          },
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
