import { fileURLToPath } from 'node:url'
import { bundle } from '../../build/bundle.ts'
import { lockedPackages } from '../../build/debian.ts'
import { type Entry, textFile } from '../../build/entry.ts'
import { strippedNode } from '../../build/node-binary.ts'
import { mergedUsr, takeTree, users, withLibraries } from '../../build/tree.ts'
import { buildNodeTools } from '../../native/build.ts'
import type { ImageConfig } from '../archive.ts'
import { labels, type Recipe } from './recipe.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** Path of the native programs in the image; the agent copies them to its node. */
const TOOLS = '/opt/understudy'

/**
 * The agent: the operator's program with another command, and the native programs that it puts on its node. Among these
 * are CRIU and GNU tar from Debian's testing release; `packages` in each program's directory lists the versions.
 */
export const agent: Recipe = async options => {
  const { version } = options
  const tree = await lockedPackages('node', options)
  const node = { path: '/usr/bin/node', source: await strippedNode(options) }
  return {
    ref: `understudy.invalid/agent:${version}`,
    layers: [
      { files: [...mergedUsr, ...(await withLibraries(tree, [node])), ...users('nonroot', 65532)] },
      { files: await toolFiles((await buildNodeTools(options)).directory) },
      {
        files: [
          ...(await bundle(MAIN)),
          textFile('/package.json', `${JSON.stringify({ name: 'understudy', version, type: 'module' })}\n`),
        ],
      },
    ],
    config: agentConfig(version),
  }
}

async function toolFiles(directory: string): Promise<Entry[]> {
  const entries = await takeTree({ root: directory, packages: [] }, '')
  return entries.flatMap(entry => {
    const path = `${TOOLS}${entry.path}`
    if (entry.path === '' || entry.type === 'symlink') return []
    // Keep only whether it is executable; the other bits depend on the user that filled the cache.
    const mode = entry.mode & 0o111 ? 0o755 : 0o644
    return [{ ...entry, path, mode }]
  })
}

/**
 * Configuration for the runtime; deploy/docker/agent.Dockerfile says the same. Root, because only root may enter the
 * namespaces of other processes.
 */
export function agentConfig(version: string): ImageConfig {
  return {
    entrypoint: ['/usr/bin/node', '/app/understudy.mjs'],
    cmd: ['agent'],
    env: ['PATH=/usr/bin', 'NODE_ENV=production'],
    user: '0:0',
    workingDir: '/',
    exposedPorts: ['9443/tcp', '9443/udp', '9444/tcp', '9445/tcp'],
    labels: labels('Understudy agent', { 'org.opencontainers.image.version': version }),
  }
}
