import { isKubeError } from '../../kube/errors.ts'
import type { CustomResourceDefinition } from '../../kube/resources.ts'
import { about, type Finding } from './finding.ts'
import type { Installation } from './installation.ts'
import { applying, type Installer, installerOf } from './installer.ts'
import { optionalKind, ourKinds } from './kind-names.ts'
import { unreadable } from './unreadable.ts'

/** A part of an OpenAPI schema. */
export interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly items?: SchemaNode
}

const { ok, broken, note } = about('kinds')
const applyOf = (plural: string, installer: Installer) =>
  `run ${applying(`crds/${plural === optionalKind ? 'pod-migration-jobs' : ''}`, installer)} of the version of the operator`

/** Checks that the kinds exist, are served, and match the schemas of this version. */
export function kindsFindings(
  { crds, operator }: Pick<Installation, 'crds' | 'operator'>,
  schemas: Readonly<Record<keyof Installation['crds'], SchemaNode>>,
): readonly Finding[] {
  const installer = installerOf({ operator })
  return ourKinds.flatMap(plural => {
    const crd = crds[plural]
    if (crd.ok) return [judge(plural, crd.value, schemas[plural], installer)]
    if (!isKubeError(crd.error, 'NotFound')) return [unreadable('kinds', plural, crd.error)]
    return plural === optionalKind
      ? []
      : [broken(plural, 'the cluster does not have this kind', `run ${applying('deploy/', installer)}`)]
  })
}

function judge(
  plural: string,
  { spec, status }: CustomResourceDefinition,
  ours: SchemaNode,
  installer: Installer,
): Finding {
  const apply = applyOf(plural, installer)
  const bad = status?.conditions?.find(
    ({ type, status: value }) => ['Established', 'NamesAccepted'].includes(type) && value !== 'True',
  )
  if (bad !== undefined)
    return broken(
      plural,
      `not served: ${bad.type} is ${bad.status}, ${bad.message ?? bad.reason ?? ''}`,
      'look for another CRD with the same plural or short names',
    )
  const version = spec.versions.find(({ name }) => name === 'v1alpha1')
  if (version?.served !== true) return broken(plural, 'v1alpha1 is not served', apply)
  const theirs = fieldsOf((version.schema?.openAPIV3Schema ?? {}) as SchemaNode)
  const known = fieldsOf(ours)
  const missing = [...known].filter(field => !theirs.has(field))
  const more = [...theirs].filter(field => !known.has(field))
  if (missing.length > 0)
    return broken(
      plural,
      `older than this program: the API server drops ${some(missing)}, and the operator may need them`,
      apply,
    )
  if (more.length > 0)
    return note(
      plural,
      `newer than this program, which does not know ${some(more)}`,
      'use the kubectl-understudy of the installed version',
    )
  return ok(plural, 'v1alpha1 is served, with every field that this version knows')
}

const some = (fields: readonly string[]) =>
  fields.length > 5
    ? `${fields.slice(0, 5).join(', ')} and ${fields.length - 5} more fields`
    : fields.join(', ')

/** Names of all fields, e.g. `spec.checkpoint.interval`. The pod template is Kubernetes' own, and left out. */
export function fieldsOf(schema: SchemaNode, path = ''): Set<string> {
  const fields = new Set<string>()
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    const field = path === '' ? name : `${path}.${name}`
    fields.add(field)
    if (field !== 'spec.template') for (const inner of fieldsOf(child, field)) fields.add(inner)
  }
  if (schema.items !== undefined) for (const inner of fieldsOf(schema.items, `${path}[]`)) fields.add(inner)
  return fields
}
