/** Makes parts of a chart from what kustomize prints: everything at its default, and each difference behind a condition. */
import { components, redis } from './components.ts'
import type { Kustomize } from './kustomize.ts'
import { idOf, type KubeObject, type Part, withComponent } from './merge.ts'
import type { Tokens } from './tokens.ts'

/** The part of deploy/base that each object comes from. */
const origins = ['admission', 'agent', 'operator'] as const

/** The namespace of the release is the operator's. Helm has made it before it sends the first object. */
const ofHelm = 'Namespace understudy-system'

/**
 * Returns a part for each object of the kustomizations. Components are added one after the other, so that each is compared with
 * everything that it may patch.
 *
 * @throws if a component does what the templates cannot express.
 */
export async function partsOf(kustomize: Kustomize, tokens: Tokens): Promise<readonly Part[]> {
  const steps = [redis, ...components]
  const overlays = steps.map((_, index) => ({
    resources: [redis.name],
    components: components.slice(0, index).map(({ name }) => name),
  }))
  const [fileOf, base, ...built] = await Promise.all([
    filesOf(kustomize),
    kustomize({ resources: ['base'] }),
    ...overlays.map(kustomize),
  ])
  const first = base.map(plain => ({ plain, tree: plain, conditions: [], file: fileOf(plain) }))
  const parts = steps.reduce<readonly Part[]>(
    (before, component, index) => withComponent(before, built[index] ?? [], component, tokens),
    first,
  )
  return parts.filter(({ plain }) => idOf(plain) !== ofHelm).map(withOrigin)
}

async function filesOf(kustomize: Kustomize): Promise<(object: KubeObject) => string> {
  const files = new Map<string, string>()
  for (const origin of origins)
    for (const object of await kustomize({ resources: [origin] })) files.set(idOf(object), origin)
  return object => {
    const file = object.kind === 'CustomResourceDefinition' ? 'crds' : files.get(idOf(object))
    if (file === undefined) throw new Error(`${idOf(object)} is in no directory of deploy/base`)
    return file
  }
}

/** Adds the conditions under which the directory of an object is installed at all. */
function withOrigin(part: Part): Part {
  const { plain, conditions, file } = part
  const also =
    plain.kind === 'CustomResourceDefinition'
      ? ['.Values.crds.install']
      : file !== 'agent'
        ? []
        : plain.kind === 'Namespace'
          ? ['.Values.agents.enabled', '.Values.agents.createNamespace']
          : ['.Values.agents.enabled']
  return { ...part, conditions: [...also, ...conditions] }
}
