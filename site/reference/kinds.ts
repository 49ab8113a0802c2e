/** Kinds of the API, a page for each version of each. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { type Field, fieldsOf } from './fields.ts'

export interface KindVersion {
  /** Path of the CustomResourceDefinition. */
  readonly source: string
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly isNamespaced: boolean
  readonly fieldSelectors: readonly string[]
  readonly fields: readonly Field[]
}

interface Definition {
  readonly kind?: string
  readonly spec: {
    readonly group: string
    readonly scope: string
    readonly names: { readonly kind: string; readonly plural: string }
    readonly versions: readonly {
      readonly name: string
      readonly selectableFields?: readonly { readonly jsonPath: string }[]
      readonly schema: { readonly openAPIV3Schema: unknown }
    }[]
  }
}

/** Reads the kinds of a file: none if it contains something else. */
export async function kindsIn(project: string, source: string): Promise<readonly KindVersion[]> {
  const definition = parse(await readFile(join(project, source), 'utf8')) as Definition
  if (definition.kind !== 'CustomResourceDefinition') return []
  const { group, scope, names, versions } = definition.spec
  return versions.map(({ name, selectableFields = [], schema }) => ({
    ...{ source, group, version: name, kind: names.kind, plural: names.plural },
    isNamespaced: scope === 'Namespaced',
    fieldSelectors: selectableFields.map(({ jsonPath }) => jsonPath.replace(/^\./, '')),
    fields: fieldsOf(schema.openAPIV3Schema),
  }))
}

export const addressOfKind = ({ group, kind, version }: KindVersion): string =>
  `reference/${group}/${kind}-${version}.html`

export const apiVersionOf = ({ group, version }: KindVersion): string => `${group}/${version}`
