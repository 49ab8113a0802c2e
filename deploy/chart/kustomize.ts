import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import { run } from '../../build/run.ts'
import type { KubeObject } from './merge.ts'

/** The directory with all kustomizations. */
export const deploy = fileURLToPath(new URL('..', import.meta.url))

/** Content of a user's overlay: directories below deploy/, and anything else that kustomize knows. */
export interface Overlay {
  readonly resources: readonly string[]
  readonly components?: readonly string[]
  readonly [field: string]: unknown
}

/** Builds overlays. */
export type Kustomize = (overlay: Overlay) => Promise<readonly KubeObject[]>

/** @throws with kubectl's message if the overlay is not valid. */
export const kustomizeWith =
  (kubectl: string, signal?: AbortSignal): Kustomize =>
  async overlay => {
    const directory = await mkdtemp(join(tmpdir(), 'understudy-overlay-'))
    try {
      // kustomize takes no absolute path.
      const below = (names: readonly string[]) => names.map(name => relative(directory, join(deploy, name)))
      const { resources, components = [] } = overlay
      const content = { ...overlay, resources: below(resources), components: below(components) }
      await writeFile(join(directory, 'kustomization.yaml'), JSON.stringify(content))
      return objectsIn(await run(kubectl, ['kustomize', directory], signal === undefined ? {} : { signal }))
    } finally {
      await rm(directory, { recursive: true })
    }
  }

export const objectsIn = (yaml: string): readonly KubeObject[] =>
  parseAllDocuments(yaml)
    .map(document => document.toJS() as KubeObject | null)
    .filter(object => object !== null)
