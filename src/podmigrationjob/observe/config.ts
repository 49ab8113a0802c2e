import { parse } from 'yaml'
import { argsConfigMap, type ParsedArgs, parseArgs } from '../../api/migration-controller-args.ts'
import { messageOf } from '../../kube/errors.ts'
import { keyOfRef } from '../../kube/object.ts'
import type { ConfigMap } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'

/** A larger text is no configuration. */
const longestText = 65_536

/** Returns the configuration as the ConfigMap says it now; the defaults without a ConfigMap. */
export function configIn(configMaps: Pick<Store<ConfigMap>, 'get'>, namespace: string): ParsedArgs {
  const { name, key } = argsConfigMap
  const text = configMaps.get(keyOfRef({ namespace, name }))?.data?.[key]
  if (text === undefined) return parseArgs({})
  if (text.length > longestText) return refused(`it is longer than ${longestText} characters`)
  try {
    return parseArgs(parse(text, { maxAliasCount: 0 }))
  } catch (error) {
    return refused(messageOf(error))
  }
}

const refused = (why: string): ParsedArgs => ({
  ...{ ok: false, code: 'InvalidValue', field: argsConfigMap.key },
  message: `ConfigMap ${argsConfigMap.name}, ${argsConfigMap.key}: ${why}`,
})
