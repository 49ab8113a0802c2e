/** Rules of `spec.service`, in CEL; the same as in src/api/service-rules.ts. */
import { refusals } from '../errors.ts'
import { serviceName } from '../service-rules.ts'
import { rule, type Schema } from './build.ts'
import { specRule } from './spec-rule.ts'

const service = 'self.service'

export const serviceRules = (): readonly Schema[] => [
  specRule(
    'ServiceForNobody',
    `!has(${service}) || has(${service}.name) || (has(${service}.perSlot) && ${service}.perSlot)`,
  ),
  servicePortsRule(),
]

export const servicePortsRule = (): Schema =>
  specRule(
    'ServicePortsAlike',
    `!has(${service}) || size(${service}.ports) < 2 || ${service}.ports.all(it, has(it.name) && ` +
      `${service}.ports.exists_one(other, has(other.name) && other.name == it.name) && ` +
      `${service}.ports.exists_one(other, other.port == it.port && ` +
      "(has(other.protocol) ? other.protocol : 'TCP') == (has(it.protocol) ? it.protocol : 'TCP')))",
  )

/** Rules that need the name of the set. The API server accepts no fieldPath into a spec that may be absent. */
export const serviceNameRules = (): readonly Schema[] => {
  const perSlot = `has(self.spec.service) && has(self.spec.service.perSlot) && self.spec.service.perSlot`
  const name = 'self.spec.service.name'
  return [
    rule(
      `!(${perSlot}) || self.metadata.name.matches('${serviceName}')`,
      refusals.ServiceNameFromSet.message,
    ),
    rule(
      `!(${perSlot}) || !has(${name}) || !${name}.startsWith(self.metadata.name + '-') || ` +
        `!${name}.substring(size(self.metadata.name) + 1).matches('^[0-9]+$')`,
      refusals.ServiceNameOfSlot.message,
    ),
  ]
}
