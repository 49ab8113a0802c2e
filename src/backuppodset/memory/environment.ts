/** The environment variables in an app's memory: they stay those of the pod in which the app once started. */
import type { ParsedSet } from '../../api/parse.ts'
import { reasons } from '../../api/reasons.ts'
import { type Anything, objectIn, objectsIn, textsIn } from '../../api/unknown.ts'
import type { Word } from '../../slot/decide/memory-view.ts'

/** Fields that differ between a pod and its successor, and how an app learns its own. */
const waysOut: Readonly<Record<string, string>> = {
  'metadata.name': 'ask the kernel (gethostname), or mount a downwardAPI volume',
  'metadata.uid': 'mount a downwardAPI volume',
  'status.podIP': 'ask the kernel (getifaddrs), and listen on 0.0.0.0',
  'status.podIPs': 'ask the kernel (getifaddrs), and listen on 0.0.0.0',
  'spec.nodeName': 'read it from the API server, by the name of the pod, whenever it is needed',
  'status.hostIP': 'read it from the API server, by the name of the pod, whenever it is needed',
  'status.hostIPs': 'read it from the API server, by the name of the pod, whenever it is needed',
}
const ofResources = 'mount a downwardAPI volume'

/**
 * Returns one warning for each saved container with variables that are wrong in a successor: those taken from a field
 * that differs between pods, and those built from them.
 * @param saved names of the containers whose memory is kept; other containers start fresh in each pod.
 */
export function environmentCaveats(
  template: ParsedSet['template'],
  saved: readonly string[],
): readonly Word[] {
  return objectsIn(template.spec.containers).flatMap((container): Word[] => {
    const { name } = container
    if (typeof name !== 'string' || !saved.includes(name)) return []
    const stale = staleVariables(container)
    if (stale.length === 0) return []
    const ways = [...new Set(stale.map(({ field }) => waysOut[field] ?? ofResources))]
    const listed = stale.map(({ variable, field }) => `${variable} (${field})`).join(', ')
    return [
      {
        reason: reasons.environmentOfDeadPod,
        message: `container ${name}: after a failover its memory still has ${listed} of the pod in which it once started: ${ways.join('; ')}`,
      },
    ]
  })
}

interface Stale {
  readonly variable: string
  /** `metadata.name`, `limits.memory`, ... */
  readonly field: string
}

function staleVariables(container: Anything): readonly Stale[] {
  const stale = new Map<string, string>()
  for (const { name, value, valueFrom } of objectsIn(container['env'])) {
    if (typeof name !== 'string') continue
    const field = fieldIn(objectIn(valueFrom)) ?? madeOf(value, stale)
    // The last variable of a name counts.
    stale.delete(name)
    if (field !== undefined) stale.set(name, field)
  }
  const words = [...textsIn(container['command']), ...textsIn(container['args'])]
  return [...stale].map(([variable, field]) => ({
    variable: words.some(word => refersTo(word, variable)) ? `${variable}, also in its arguments,` : variable,
    field,
  }))
}

function fieldIn(valueFrom: Anything): string | undefined {
  const { fieldPath } = objectIn(valueFrom['fieldRef'])
  if (typeof fieldPath === 'string' && Object.hasOwn(waysOut, fieldPath)) return fieldPath
  const { resource } = objectIn(valueFrom['resourceFieldRef'])
  return typeof resource === 'string' ? resource : undefined
}

/** Returns the field of the first earlier variable that the value refers to. */
function madeOf(value: unknown, stale: ReadonlyMap<string, string>): string | undefined {
  if (typeof value !== 'string') return undefined
  return [...stale].find(([variable]) => refersTo(value, variable))?.[1]
}

/** True if the kubelet would expand the variable there: `$(NAME)`, but not where the dollar is doubled. */
const refersTo = (text: string, variable: string): boolean =>
  [...text.matchAll(/\$\$|\$\(([^)]*)\)/g)].some(([, name]) => name === variable)
