/** The packages of other projects in the published images and programs. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundledModules } from '../build/bundle.ts'
import { type DebianOptions, lockedPackages } from '../build/debian.ts'
import { nodeVersion } from '../build/node-binary.ts'
import type { SetName } from '../build/package-sets.ts'
import { packagesIn } from '../plugin/notices.ts'
import type { Part } from './sbom.ts'

export const project = join(import.meta.dirname, '..')

/** The images that an installation needs. */
export const releasedImages = ['operator', 'agent', 'waker'] as const
export type ReleasedImage = (typeof releasedImages)[number]

/** Sets of packages that the recipe of each image takes files from, or links to. */
const debianSets: Readonly<Record<ReleasedImage, readonly SetName[]>> = {
  operator: ['node'],
  agent: ['node', 'criu', 'musl-linux', 'libmd'],
  waker: ['musl-linux', 'libmd'],
}

/**
 * Returns the packages of an image: all of each set, although an image may contain no file of some.
 */
export async function partsOfImage(name: ReleasedImage, options: DebianOptions): Promise<readonly Part[]> {
  const trees = await Promise.all(debianSets[name].map(set => lockedPackages(set, options)))
  const debian = [...new Set(trees.flatMap(({ packages }) => packages))].map(debianPart)
  if (name === 'waker') return debian
  const modules = await bundledModules(join(project, 'src/main.ts'))
  return [...debian, nodePart(nodeVersion()), ...(await npmParts(modules))]
}

/** Returns the packages of the program for users. @param modules in its bundle @param node version of its Node */
export async function partsOfProgram(modules: readonly string[], node: string): Promise<readonly Part[]> {
  return [nodePart(node), ...(await npmParts(modules))]
}

const nodePart = (version: string): Part => ({
  ecosystem: 'generic',
  name: 'node',
  version,
  licence: 'MIT, and those of the libraries in it',
})

function debianPart(fullName: string): Part {
  const [name = '', version = '', architecture = ''] = fullName.split('_')
  return { ecosystem: 'deb', name, version, architecture }
}

const npmParts = (modules: readonly string[]): Promise<readonly Part[]> =>
  Promise.all(
    packagesIn(modules).map(async (path): Promise<Part> => {
      const text = await readFile(join(project, path, 'package.json'), 'utf8')
      const { name, version, license } = JSON.parse(text) as {
        readonly name: string
        readonly version: string
        readonly license?: string
      }
      return { ecosystem: 'npm', name, version, ...(license !== undefined && { licence: license }) }
    }),
  )
