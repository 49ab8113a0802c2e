import type { refusals } from './errors.ts'
import { isSet, isText, objectIn, objectsIn } from './unknown.ts'

type Rules = readonly (readonly [keyof typeof refusals, boolean])[]

/** Names of Services, which are stricter than those of sets. */
export const serviceName = '^[a-z]([-a-z0-9]*[a-z0-9])?$'
/** Names of a Service's ports. */
export const portName = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'

/** The CRD has the same rules as CEL, see src/api/schema/service-rules.ts. */
export function serviceRules(set: string, value: unknown): Rules {
  if (!isSet(value)) return []
  const { name, ports: given, perSlot } = objectIn(value)
  const ports = objectsIn(given)
  const labels = ports.map(port => port['name'])
  const places = ports.map(({ port, protocol }) => `${port}/${protocol ?? 'TCP'}`)
  const isOfSlot =
    typeof name === 'string' && name.startsWith(`${set}-`) && /^\d+$/.test(name.slice(set.length + 1))
  return [
    ['ServiceForNobody', !isSet(name) && perSlot !== true],
    [
      'ServicePortsAlike',
      ports.length > 1 &&
        (!labels.every(isSet) || new Set(labels).size < ports.length || new Set(places).size < ports.length),
    ],
    ['ServiceNameFromSet', perSlot === true && !isText(set, new RegExp(serviceName))],
    ['ServiceNameOfSlot', perSlot === true && isOfSlot],
  ]
}
