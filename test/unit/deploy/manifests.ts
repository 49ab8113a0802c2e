import { globSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'

export const project = join(import.meta.dirname, '../../..')

/** An object in a manifest, with the fields that the tests read. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Record<string, string>
  }
  readonly [field: string]: unknown
}

export async function text(path: string): Promise<string> {
  return readFile(join(project, path), 'utf8')
}

/** Returns the objects of one YAML file of the repository. */
export async function manifests(path: string): Promise<Manifest[]> {
  return parseAllDocuments(await text(path)).map(document => document.toJS() as Manifest)
}

/** Returns the first object of a file, with the fields that the caller expects. */
export async function manifest<T>(path: string): Promise<Manifest & T> {
  const [first] = await manifests(path)
  if (first === undefined) throw new Error(`nothing in ${path}`)
  return first as Manifest & T
}

/** Returns every object in the YAML files directly in `directory`, except kustomizations, with the fields that the caller expects. */
export async function manifestsBelow<T = object>(directory: string): Promise<(Manifest & T)[]> {
  const names = (await readdir(join(project, directory))).filter(name => name.endsWith('.yaml'))
  const objects = await Promise.all(names.map(name => manifests(`${directory}/${name}`)))
  return objects.flat().filter(({ kind }) => kind !== 'Kustomization') as (Manifest & T)[]
}

/** Returns the paths of all YAML files that users apply, however deep, in order. */
export const appliedFiles = (): string[] =>
  globSync('{deploy,samples}/**/*.{yaml,yml}', { cwd: project }).sort()

/** Returns the images that a value of a manifest names, in fields and in arguments. */
export function imagesIn(value: unknown): string[] {
  if (typeof value === 'string') return [...value.matchAll(/-image=(\S+)/g)].map(([, image = '']) => image)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, each]) =>
    (key === 'image' || key === 'newName') && typeof each === 'string' ? [each] : imagesIn(each),
  )
}

export async function packageVersion(): Promise<string> {
  return (parse(await text('package.json')) as { version: string }).version
}
