import { fileURLToPath } from 'node:url'
import { bundle } from '../../build/bundle.ts'
import { type DebianOptions, lockedPackages } from '../../build/debian.ts'
import { textFile } from '../../build/entry.ts'
import { strippedNode } from '../../build/node-binary.ts'
import { mergedUsr, users, withLibraries } from '../../build/tree.ts'
import type { ImageConfig, ImageSource } from '../archive.ts'
import { labels, type Recipe } from './recipe.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** The operator: Node, the C and C++ libraries that it is linked to, and our program in one file. */
export const operator: Recipe = options => operatorFrom(MAIN, options)

/** Like `operator`, with another program. */
export async function operatorFrom(
  entryPoint: string,
  options: DebianOptions & { readonly version: string },
): Promise<ImageSource> {
  const { version } = options
  const tree = await lockedPackages('node', options)
  const node = { path: '/usr/bin/node', source: await strippedNode(options) }
  return {
    ref: `understudy.invalid/operator:${version}`,
    layers: [
      { files: [...mergedUsr, ...(await withLibraries(tree, [node])), ...users('nonroot', 65532)] },
      {
        files: [
          ...(await bundle(entryPoint)),
          // Beside /app, as it is beside src/, so that the program finds its version in the same way in both.
          textFile('/package.json', `${JSON.stringify({ name: 'understudy', version, type: 'module' })}\n`),
        ],
      },
    ],
    config: operatorConfig(version),
  }
}

/** Configuration for the runtime; deploy/docker/operator.Dockerfile says the same. */
export function operatorConfig(version: string): ImageConfig {
  return {
    entrypoint: ['/usr/bin/node', '/app/understudy.mjs'],
    cmd: ['operator'],
    env: ['PATH=/usr/bin', 'NODE_ENV=production'],
    user: '65532:65532',
    workingDir: '/',
    exposedPorts: ['8080/tcp', '8081/tcp'],
    labels: labels('Understudy operator', { 'org.opencontainers.image.version': version }),
  }
}
