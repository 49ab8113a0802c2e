import { type InjectedResources, injectedResources } from '../../api/injected-resources.ts'
import { parseBytes } from '../../api/memory.ts'
import type { LimitRange } from '../../kube/resources.ts'
import { about, type Finding } from './finding.ts'
import type { Installation } from './installation.ts'
import { unreadable } from './unreadable.ts'

const { broken } = about('sets')

type Seen = Pick<Installation, 'operator' | 'sets' | 'limitRanges'>

/** Finds LimitRanges that refuse pods of sets because of the small containers that the operator adds to them. */
export function limitRangeFindings({ operator, sets, limitRanges }: Seen): readonly Finding[] {
  if (!sets.ok) return []
  const wanted = new Set(
    sets.value
      .filter(({ spec }) => spec.template?.spec?.containers?.some(({ resources }) => resources !== undefined))
      .map(({ metadata }) => metadata.namespace),
  )
  if (wanted.size === 0) return []
  if (!limitRanges.ok) return [unreadable('sets', 'limit ranges', limitRanges.error)]
  const added = operator.ok
    ? injectedBy(operator.value.spec?.template.spec?.containers[0]?.args ?? [])
    : injectedResources
  return limitRanges.value
    .filter(({ metadata }) => wanted.has(metadata.namespace))
    .flatMap(range => tooHigh(range, added))
}

/** The resources of the containers that the operator adds, by its arguments. */
export function injectedBy(args: readonly string[]): InjectedResources {
  const given = args
    .findLast(arg => arg.startsWith('--injected-resources='))
    ?.split('=')
    .slice(1)
    .join('=')
  const pairs = (given ?? '').split(',').flatMap(part => {
    const [name = '', value] = part.split('=')
    return value === undefined ? [] : [[name, value]]
  })
  return { ...injectedResources, ...Object.fromEntries(pairs) }
}

function tooHigh({ metadata, spec }: LimitRange, added: InjectedResources): Finding[] {
  return (spec?.limits ?? []).flatMap(({ type, min = {} }) =>
    type !== 'Container'
      ? []
      : (['cpu', 'memory'] as const).flatMap(resource => {
          const least = min[resource]
          if (least === undefined || (amountOf(least) ?? 0) <= (amountOf(added[resource]) ?? 0)) return []
          return [
            broken(
              `${metadata.namespace}/${metadata.name}`,
              `this LimitRange requires at least ${least} of ${resource} per container, but the containers that the operator adds to pods have ${added[resource]}: pods of sets are refused`,
              `start the operator with --injected-resources=${resource}=${least}`,
            ),
          ]
        }),
  )
}

/** Cores or bytes. */
const amountOf = (quantity: string): number | undefined =>
  /^\d+(\.\d+)?m$/.test(quantity) ? Number(quantity.slice(0, -1)) / 1000 : parseBytes(quantity)
