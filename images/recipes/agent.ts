import { fileURLToPath } from 'node:url'
import { buildNodeTools } from '../../native/build.ts'
import type { ImageConfig } from '../archive.ts'
import { bundle } from '../bundle.ts'
import { debianPackages, type PackageTree } from '../debian.ts'
import type { Entry } from '../entry.ts'
import { textFile } from '../entry.ts'
import { strippedNode } from '../node-binary.ts'
import { mergedUsr, takeTree, users, withLibraries } from '../tree.ts'
import { labels, type Recipe } from './recipe.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** Where the native programs lie in the image; the agent copies them to its node. */
export const TOOLS = '/opt/understudy'

/** The agent: the operator's program with another command, and the native programs that it puts on its node. */
export const agent: Recipe = async options => {
  const { version } = options
  const tree = await debianPackages(['libc6', 'libgcc-s1', 'libstdc++6'], options)
  const node = { path: '/usr/bin/node', source: await strippedNode(options) }
  const tools = await buildNodeTools(options)
  return {
    ref: `understudy/agent:${version}`,
    layers: [
      { files: [...mergedUsr, ...(await withLibraries(tree, [node])), ...users('nonroot', 65532)] },
      { files: await toolFiles({ root: tools.directory, packages: [] }) },
      {
        files: [
          ...(await bundle(MAIN)),
          textFile('/package.json', `${JSON.stringify({ name: 'understudy', version, type: 'module' })}\n`),
        ],
      },
    ],
    config: agentConfig(version, { ...tools.criu.versions, ...tools.nft.versions }),
  }
}

async function toolFiles(tools: PackageTree): Promise<Entry[]> {
  const entries = await takeTree(tools, '/')
  return entries.flatMap(entry =>
    entry.path === '/' ? [] : [{ ...entry, path: `${TOOLS}/${entry.path.replace(/^\/+/, '')}` }],
  )
}

/** What the runtime is told. Root: it enters other processes' namespaces, which nobody else may. */
export function agentConfig(version: string, programs: Readonly<Record<string, string>>): ImageConfig {
  return {
    entrypoint: ['/usr/bin/node', '/app/understudy.mjs'],
    cmd: ['agent'],
    env: ['PATH=/usr/bin', 'NODE_ENV=production'],
    user: '0:0',
    workingDir: '/',
    labels: labels('Understudy agent', {
      'org.opencontainers.image.version': version,
      ...Object.fromEntries(
        Object.entries(programs).map(([name, it]) => [`backup.example.com/${name}-version`, it]),
      ),
    }),
  }
}
