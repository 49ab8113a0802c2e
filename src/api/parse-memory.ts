import {
  defaults,
  diskUses,
  drainModes,
  holderChoices,
  hotBackupModes,
  limits,
  protocols,
  serviceTypes,
} from './backuppodset.ts'
import {
  type ParsedLiveness,
  type ParsedMemory,
  type ParsedService,
  parseBytes,
  parseDuration,
} from './memory.ts'
import type { Reader } from './reader.ts'
import { portName, serviceName } from './service-rules.ts'
import { containerNames } from './template-rules.ts'
import { isSet, objectsIn, textsIn } from './unknown.ts'

/** Parses the settings for memory; undefined unless the set has `checkpoint` and its hot backups are not `Warm`. */
export function parseMemory(read: Reader, spec: Readonly<Record<string, unknown>>): ParsedMemory | undefined {
  const hotBackup = read.object('spec.hotBackup', spec['hotBackup'])
  const mode = read.oneOf('spec.hotBackup.mode', hotBackup['mode'], hotBackupModes, defaults.hotBackupMode)
  if (!isSet(spec['checkpoint']) || mode === 'Warm') return undefined
  const checkpoint = read.object('spec.checkpoint', spec['checkpoint'])
  const volumes = read.object('spec.checkpoint.volumes', checkpoint['volumes'])
  const all = containerNames(spec['template'])
  const named = checkpoint['containers']
  if (isSet(named) && textsIn(named).length === 0)
    read.invalid('spec.checkpoint.containers', named, 'a list of at least one name')
  const number = (key: 'maxFreezePercent' | 'copies' | 'keep' | 'giveUpAfterSeconds') =>
    read.integer(`spec.checkpoint.${key}`, checkpoint[key], limits[key], defaults.checkpoint[key])
  return Object.freeze({
    mode,
    intervalMs: intervalOf(read, checkpoint['interval'] ?? defaults.checkpoint.interval),
    maxFreezePercent: number('maxFreezePercent'),
    // A rule of the template checks that these containers exist.
    containers: all.filter(name => !Array.isArray(named) || named.includes(name)),
    copies: number('copies'),
    matchingHolders:
      read.oneOf(
        'spec.checkpoint.holders',
        checkpoint['holders'],
        holderChoices,
        defaults.checkpoint.holders,
      ) === 'Matching',
    keep: number('keep'),
    giveUpAfterMs: number('giveUpAfterSeconds') * 1000 || undefined,
    retainMs: read.measure(
      'spec.checkpoint.retain',
      checkpoint['retain'] ?? defaults.checkpoint.retain,
      parseDuration,
      limits.retain,
      'a duration from 0s to 720h',
    ),
    disk:
      read.oneOf('spec.checkpoint.disk', checkpoint['disk'], diskUses, defaults.checkpoint.disk) !== 'None',
    movesOnDrain:
      read.oneOf('spec.checkpoint.drain', checkpoint['drain'], drainModes, defaults.checkpoint.drain) ===
      'Move',
    volumeBytes: read.measure(
      'spec.checkpoint.volumes.maxSize',
      volumes['maxSize'] ?? defaults.checkpoint.volumes.maxSize,
      parseBytes,
      { min: 0, max: Number.MAX_SAFE_INTEGER },
      'a size such as 512Mi',
    ),
  })
}

export const intervalOf = (read: Reader, value: unknown): number =>
  durationOf(read, 'spec.checkpoint.interval', value, limits.interval, {
    code: 'IntervalOutOfRange',
    expected: 'a duration from 200ms to 1h',
  })

export const nodeTimeoutOf = (read: Reader, value: unknown): number =>
  Math.round(
    durationOf(read, 'spec.failover.nodeTimeout', value ?? defaults.nodeTimeout, limits.nodeTimeout, {
      code: 'NodeTimeoutOutOfRange',
      expected: 'a duration from 1s to 60s',
    }),
  )

/** Returns the milliseconds of a duration; one out of bounds is refused and returned. */
function durationOf(
  read: Reader,
  name: string,
  value: unknown,
  { min, max }: { readonly min: number; readonly max: number },
  { code, expected }: { readonly code: Parameters<Reader['refuse']>[0]; readonly expected: string },
): number {
  const any = { min: 0, max: Number.MAX_SAFE_INTEGER }
  const ms = read.measure(name, value, parseDuration, any, expected)
  if (typeof value === 'string' && parseDuration(value) !== undefined && (ms < min || ms > max))
    read.refuse(code)
  return ms
}

/** Parses the Services whose endpoints the operator writes. Rules check how the fields relate to each other. */
export function parseService(read: Reader, value: unknown): ParsedService | undefined {
  if (!isSet(value)) return undefined
  const service = read.object('spec.service', value)
  const name = service['name']
  const ports = objectsIn(service['ports'])
  if (ports.length === 0) read.invalid('spec.service.ports', service['ports'], 'a list of at least one port')
  return Object.freeze({
    name: isSet(name) ? read.matching('spec.service.name', name, serviceName) : undefined,
    perSlot: read.flag('spec.service.perSlot', service['perSlot'], defaults.perSlot),
    type: read.oneOf('spec.service.type', service['type'], serviceTypes, defaults.serviceType),
    ports: Object.freeze(
      ports.map((given, index) => {
        const at = `spec.service.ports[${index}]`
        const port = read.integer(`${at}.port`, given['port'], limits.port, 0)
        if (!isSet(given['port'])) read.invalid(`${at}.port`, given['port'], 'a port number')
        return Object.freeze({
          name: isSet(given['name']) ? read.matching(`${at}.name`, given['name'], portName) : undefined,
          port,
          targetPort: read.integer(`${at}.targetPort`, given['targetPort'], limits.port, port),
          protocol: read.oneOf(`${at}.protocol`, given['protocol'], protocols, defaults.protocol),
        })
      }),
    ),
  })
}

export function parseLiveness(read: Reader, value: unknown): ParsedLiveness | undefined {
  if (!isSet(value)) return undefined
  const liveness = read.object('spec.failover.liveness', value)
  const { periodMilliseconds, failureThreshold } = defaults.liveness
  return Object.freeze({
    periodMs: read.integer(
      'spec.failover.liveness.periodMilliseconds',
      liveness['periodMilliseconds'],
      limits.livenessPeriod,
      periodMilliseconds,
    ),
    failureThreshold: read.integer(
      'spec.failover.liveness.failureThreshold',
      liveness['failureThreshold'],
      limits.failureThreshold,
      failureThreshold,
    ),
  })
}
