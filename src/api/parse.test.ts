// Long because it is a list of broken specs with their codes.
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { forged } from '../../test/support/forged.ts'
import type { BackupPodSet } from './backuppodset.ts'
import { refusals } from './errors.ts'
import { parseSet } from './parse.ts'

const container = { name: 'app', image: 'app' }
const template = { spec: { containers: [container] } }
const metadata = { name: 'set', namespace: 'shop', uid: 'u', resourceVersion: '1', generation: 3 }
const parse = (spec: unknown, name = 'set') =>
  parseSet(forged<BackupPodSet>({ metadata: { ...metadata, name }, spec }))
const withPod = (pod: object) => parse({ template: { spec: { containers: [container], ...pod } } })

describe('parseSet', () => {
  it('a set with a template alone has every field', () => {
    expect(parse({ template })).toEqual({
      ok: true,
      set: {
        name: 'set',
        namespace: 'shop',
        uid: 'u',
        generation: 3,
        replicas: 1,
        hotBackups: 0,
        coldBackups: 0,
        strategy: {
          init: 'random',
          unallocatedToColdbackup: 'random',
          unallocatedToHotbackup: 'random',
          unallocatedToReplicas: 'random',
          coldbackupToHotbackup: 'random',
          coldbackupToReplicas: 'random',
          hotbackupToReplicas: 'random',
          replicasToUnallocated: 'random',
          hotbackupToUnallocated: 'random',
          coldbackupToUnallocated: 'random',
        },
        schedulerName: 'default-scheduler',
        wakeupTimeout: 5,
        gatePosition: 'First',
        paused: false,
        suspended: false,
        antiAffinity: 'Preferred',
        updateStrategy: 'RollingUpdate',
        allowStateLoss: false,
        failover: {
          unreadySeconds: 30,
          crashLoop: 'Replace',
          nodeTimeoutMs: 3_000,
          fencing: 'Freeze',
          grant: 'None',
        },
        template,
      },
    })
  })

  it('F02: the object of the paper keeps its meaning', () => {
    const paper = parseYaml(readFileSync(new URL('../../samples/paper.yaml', import.meta.url), 'utf8'))
    const parsed = parse(paper.spec)
    expect(parsed).toMatchObject({
      ok: true,
      set: { replicas: 2, hotBackups: 2, coldBackups: 2, wakeupTimeout: 5, template: paper.spec.template },
    })
  })

  it('what it returns cannot be changed', () => {
    const parsed = parse({ template })
    if (!parsed.ok) throw new Error(parsed.message)
    expect([parsed.set, parsed.set.strategy, parsed.set.failover].every(Object.isFrozen)).toBe(true)
  })

  it('absent and null are the same', () => {
    const nulls = Object.fromEntries(
      ['replicas', 'strategy', 'schedulerName', 'paused', 'failover', 'updateStrategy'].map(key => [
        key,
        null,
      ]),
    )
    expect(parse({ ...nulls, template })).toEqual(parse({ template }))
  })

  it('memory is kept when it is asked for, and not when hot backups are to be warm', () => {
    const memoryOf = (spec: object) => {
      const parsed = parse({ template, ...spec })
      if (!parsed.ok) throw new Error(parsed.message)
      return parsed.set.memory
    }
    expect(memoryOf({})).toBeUndefined()
    expect(memoryOf({ checkpoint: {}, hotBackup: { mode: 'Warm' } })).toBeUndefined()
    expect(memoryOf({ checkpoint: {} })).toEqual({
      mode: 'Frozen',
      intervalMs: 10_000,
      maxFreezePercent: 2,
      containers: ['app'],
      copies: 2,
      matchingHolders: true,
      keep: 2,
      giveUpAfterMs: undefined,
      retainMs: 600_000,
      volumeBytes: 2 ** 30,
      disk: true,
      movesOnDrain: true,
    })
    expect(
      memoryOf({
        checkpoint: { interval: '1m1.5s', volumes: { maxSize: '5M' } },
        hotBackup: { mode: 'Staged' },
      }),
    ).toMatchObject({ mode: 'Staged', intervalMs: 61_500, volumeBytes: 5_000_000 })
  })

  it('what is kept is not rolled away by an edit of the template', () => {
    const of = (spec: object) => parse({ template, ...spec })
    expect(of({})).toMatchObject({ set: { updateStrategy: 'RollingUpdate' } })
    expect(of({ checkpoint: {} })).toMatchObject({ set: { updateStrategy: 'OnDelete' } })
    expect(of({ checkpoint: {}, hotBackup: { mode: 'Warm' } })).toMatchObject({
      set: { updateStrategy: 'RollingUpdate' },
    })
  })

  it.each([
    ['spec.replicas', { replicas: -1 }, 'spec.replicas is -1: set it to a whole number from 0 to 10000'],
    ['spec.hotBackups', { hotBackups: 0.5 }, 'a whole number from 0 to 10000'],
    ['spec.coldBackups', { coldBackups: '2' }, 'spec.coldBackups is "2": set it to a whole number'],
    ['spec.wakeupTimeout', { wakeupTimeout: 0 }, 'a whole number from 1 to 300'],
    ['spec.schedulerName', { schedulerName: '' }, 'a string of 1 to 253 characters'],
    ['spec.paused', { paused: 'yes' }, 'true or false'],
    ['spec.strategy', { strategy: 'random' }, 'an object'],
    ['spec.strategy.init', { strategy: { init: 'oldest' } }, 'one of random, spread'],
    [
      'spec.strategy.hotbackupToReplicas',
      { strategy: { hotbackupToReplicas: 'best' } },
      'one of random, oldest',
    ],
    ['spec.gatePosition', { gatePosition: 'Middle' }, 'one of First, Last'],
    ['spec.antiAffinity', { antiAffinity: 'Hard' }, 'one of Preferred, Required, None'],
    ['spec.updateStrategy.type', { updateStrategy: { type: 'Recreate' } }, 'one of RollingUpdate, OnDelete'],
    ['spec.failover.unreadySeconds', { failover: { unreadySeconds: -1 } }, 'from 0 to 86400'],
    [
      'spec.checkpoint.interval',
      { checkpoint: { interval: 'soon' } },
      'spec.checkpoint.interval is "soon": set it to a duration from 200ms to 1h',
    ],
    ['spec.checkpoint.interval', { checkpoint: { interval: 5 } }, 'a duration from 200ms to 1h'],
    ['spec.checkpoint.drain', { checkpoint: { drain: 'Later' } }, 'one of Move, Evict'],
    ['spec.service.ports', { service: { name: 'web' } }, 'at least one port'],
    ['spec.service.name', { service: { name: 'Web', ports: [{ port: 80 }] } }, 'a name of at most 63'],
    [
      'spec.service.type',
      { service: { name: 'web', type: 'ExternalName', ports: [{ port: 80 }] } },
      'one of ClusterIP',
    ],
    ['spec.service.ports[0].port', { service: { name: 'web', ports: [{}] } }, 'a port number'],
    [
      'spec.service.ports[0].targetPort',
      { service: { name: 'web', ports: [{ port: 80, targetPort: 'http' }] } },
      'a whole number from 1 to 65535',
    ],
    ['spec.checkpoint.volumes.maxSize', { checkpoint: { volumes: { maxSize: 1 } } }, 'a size such as 512Mi'],
    [
      'spec.checkpoint.giveUpAfterSeconds',
      { checkpoint: { giveUpAfterSeconds: -1 } },
      'a whole number from 0 to 2592000',
    ],
    ['spec.checkpoint.copies', { checkpoint: { copies: 9 } }, 'a whole number from 1 to 5'],
    ['spec.hotBackup.mode', { hotBackup: { mode: 'Live' } }, 'one of Frozen, Staged, Warm'],
    ['spec.failover.fencing', { failover: { fencing: 'Kill' } }, 'one of Freeze, None'],
    ['spec.failover.grant', { failover: { grant: 'All' } }, 'one of None, Announced, Heir'],
    ['spec.failover.nodeTimeout', { failover: { nodeTimeout: 'soon' } }, 'a duration from 1s to 60s'],
    ['spec.failover.crashLoop', { failover: { crashLoop: 'Delete' } }, 'one of Replace, Ignore'],
  ])('names %s and what it takes', (field, spec, message) => {
    const parsed = parse({ ...spec, template })
    expect(parsed).toMatchObject({ ok: false, code: 'InvalidValue', field })
    expect(parsed.ok ? '' : parsed.message).toContain(message)
  })

  const keeping = (pod: object) =>
    parse({ checkpoint: {}, template: { spec: { containers: [container], ...pod } } })
  const pulling = (pod: object, spec: object = {}) =>
    parse({
      checkpoint: { source: 'http', http: { port: 80 } },
      template: { spec: { containers: [container], ...pod } },
      ...spec,
    })
  it('MP-29: a pod may end with success if it has one container without livenessProbe, memory and no backups', () => {
    const ending = (containers: readonly object[], spec: object = {}) => {
      const parsed = parse({
        ...{ checkpoint: {}, replicas: 1, hotBackups: 0, coldBackups: 0 },
        template: { spec: { containers, restartPolicy: 'OnFailure' } },
        ...spec,
      })
      return parsed.ok ? undefined : parsed.code
    }
    expect(ending([container])).toBeUndefined()
    expect(ending([{ ...container, readinessProbe: {}, startupProbe: {} }])).toBeUndefined()
    expect(ending([container, { ...container, name: 'b' }])).toBe('RestartPolicyNotAlways')
    expect(ending([{ ...container, livenessProbe: { tcpSocket: { port: 1 } } }])).toBe(
      'RestartPolicyNotAlways',
    )
    for (const more of [{ replicas: 2 }, { hotBackups: 1 }, { coldBackups: 1 }, { checkpoint: undefined }])
      expect(ending([container], more)).toBe('RestartPolicyNotAlways')
  })

  const broken: Record<keyof typeof refusals, ReturnType<typeof parse>> = {
    NameTooLong: parse({ template }, 'x'.repeat(51)),
    TemplateMissing: parse({}),
    ContainersMissing: withPod({ containers: [] }),
    ContainerNameInvalid: withPod({ containers: [{ ...container, name: 'App_1' }] }),
    ContainerNameReserved: withPod({ initContainers: [{ ...container, name: 'understudy-gate' }] }),
    ImageMissing: withPod({ containers: [{ name: 'app' }] }),
    RestartPolicyNotAlways: withPod({ restartPolicy: 'Never' }),
    LabelTypeReserved: parse({ template: { ...template, metadata: { labels: { type: 'web' } } } }),
    LabelReserved: parse({
      template: { ...template, metadata: { labels: { 'backup.example.com/slot': '1' } } },
    }),
    LabelValueInvalid: parse({ template: { ...template, metadata: { labels: { app: 'my app' } } } }),
    AnnotationReserved: parse({
      template: { ...template, metadata: { annotations: { 'backup.example.com/epoch': '1' } } },
    }),
    GenerateNameRefused: parse({ template: { ...template, metadata: { generateName: 'x-' } } }),
    NamespaceRefused: parse({ template: { ...template, metadata: { namespace: 'other' } } }),
    FinalizersRefused: parse({ template: { ...template, metadata: { finalizers: ['a/b'] } } }),
    OwnerReferencesRefused: parse({ template: { ...template, metadata: { ownerReferences: [] } } }),
    NodeNameRefused: withPod({ nodeName: 'n' }),
    EphemeralContainersRefused: withPod({ ephemeralContainers: [container] }),
    ActiveDeadlineRefused: withPod({ activeDeadlineSeconds: 60 }),
    OperatingSystemUnsupported: withPod({ os: { name: 'windows' } }),
    GateOnHostNetwork: parse({
      coldBackups: 1,
      template: { spec: { containers: [container], hostNetwork: true } },
    }),
    GatePortTaken: parse({
      coldBackups: 1,
      gatePosition: 'Last',
      template: {
        spec: {
          containers: [container],
          initContainers: [{ ...container, name: 'proxy', ports: [{ containerPort: 20_000 }] }],
        },
      },
    }),
    MemoryOnHost: keeping({ hostNetwork: true }),
    MemoryOfSharedProcesses: keeping({ shareProcessNamespace: true }),
    MemoryOfUserNamespace: keeping({ hostUsers: false }),
    MemoryOfPrivileged: keeping({
      initContainers: [
        {
          ...container,
          name: 'i',
          securityContext: { capabilities: { add: ['NET_ADMIN', 'cap_sys_ptrace'] } },
        },
      ],
    }),
    MemoryProbedElsewhere: keeping({
      containers: [{ ...container, readinessProbe: { httpGet: { port: 80, host: '169.254.169.254' } } }],
    }),
    MemoryOnTerminal: keeping({ containers: [{ ...container, tty: true }] }),
    MemoryOfDevices: keeping({ containers: [{ ...container, resources: { claims: [{ name: 'gpu' }] } }] }),
    MemoryBesideClaim: keeping({
      volumes: [{ name: 'data', ephemeral: { volumeClaimTemplate: { spec: {} } } }],
    }),
    MemoryBesideDisk: keeping({ volumes: [{ name: 'a', rbd: { image: 'a', monitors: [] } }] }),
    MemoryOfHugePages: keeping({
      containers: [{ ...container, resources: { limits: { 'hugepages-2Mi': '2Mi' } } }],
    }),
    MemoryBelowExpression: keeping({
      containers: [{ ...container, volumeMounts: [{ name: 'a', mountPath: '/a', subPathExpr: '$(A)' }] }],
    }),
    MemoryOfRestartRules: keeping({ containers: [{ ...container, restartPolicy: 'Never' }] }),
    HoldNameReserved: keeping({ volumes: [{ name: 'understudy-hold', emptyDir: {} }] }),
    HoldPathTaken: keeping({
      containers: [{ ...container, volumeMounts: [{ name: 'x', mountPath: '/.understudy' }] }],
    }),
    NodeTimeoutOutOfRange: parse({ failover: { nodeTimeout: '900ms' }, template }),
    IntervalOutOfRange: parse({ checkpoint: { interval: '100ms' }, template }),
    StateLossWithoutCheckpoint: parse({ updateStrategy: { allowStateLoss: true }, template }),
    StateLossWithoutRoll: parse({ checkpoint: {}, updateStrategy: { allowStateLoss: true }, template }),
    HttpSourceIncomplete: parse({ checkpoint: { source: 'http' }, template }),
    HttpSourceUnused: parse({ checkpoint: { http: { port: 80 } }, template }),
    HttpHeaderReserved: parse({
      checkpoint: { source: 'http', http: { port: 80, headers: [{ name: 'Host', value: 'other' }] } },
      template,
    }),
    HttpSourceWithMode: pulling({}, { hotBackup: { mode: 'Frozen' } }),
    HttpSourceOnHost: pulling({ hostNetwork: true }),
    HttpSourceWithLiveness: pulling(
      { containers: [{ ...container, livenessProbe: { tcpSocket: { port: 80 } } }] },
      { failover: { liveness: {} } },
    ),
    CloneWithoutCheckpoint: parse({ template, cloneFrom: { pod: 'web-x' } }),
    HttpSourceWithSuspend: pulling({ containers: [container] }, { suspend: true }),
    LivenessWithoutCheckpoint: parse({ failover: { liveness: {} }, template }),
    LivenessWithoutProbe: parse({
      checkpoint: {},
      failover: { liveness: {} },
      template: { spec: { containers: [{ ...container, livenessProbe: { exec: { command: ['/ok'] } } }] } },
    }),
    ServiceForNobody: parse({ service: { ports: [{ port: 80 }] }, template }),
    ServicePortsAlike: parse({ service: { name: 'web', ports: [{ port: 80 }, { port: 81 }] }, template }),
    ServiceNameFromSet: parse({ service: { perSlot: true, ports: [{ port: 80 }] }, template }, 'a.b'),
    ServiceNameOfSlot: parse({
      service: { name: 'set-0', perSlot: true, ports: [{ port: 80 }] },
      template,
    }),
    ReadinessGateReserved: withPod({ readinessGates: [{ conditionType: 'backup.example.com/serving' }] }),
    CheckpointContainerUnknown: parse({ checkpoint: { containers: ['other'] }, template }),
    ModeWithoutCheckpoint: parse({ hotBackup: { mode: 'Staged' }, template }),
    SchedulersDiffer: withPod({ schedulerName: 'other' }),
  }
  it.each(Object.entries(broken))('refuses with code %s', (code, parsed) => {
    const { field, message } = refusals[code as keyof typeof refusals]
    expect(parsed).toMatchObject({ ok: false, code, field, message })
  })

  it.each([
    ['containers', { name: 'x', mountPath: '/.understudy/run-other' }],
    ['containers', { name: 'understudy-hold', mountPath: '/mine' }],
    ['initContainers', { name: 'understudy-hold', mountPath: '/mine' }],
  ])('gives no container of the template a part of the stage: %s, %j', (list, mount) => {
    const mounting = { ...container, name: 'mounting', volumeMounts: [mount] }
    const lists = { containers: [container], initContainers: [] as object[] }
    const pod = { ...lists, [list]: [...lists[list as keyof typeof lists], mounting] }
    expect(keeping(pod)).toMatchObject({ code: 'HoldPathTaken' })
    const beside = { ...mounting, volumeMounts: [{ name: 'x', mountPath: '/.understudyx' }] }
    expect(keeping({ containers: [container, beside] })).toMatchObject({ ok: true })
  })

  it('never throws, whatever is stored', () => {
    const pod = fc.record(
      {
        containers: fc.anything(),
        initContainers: fc.anything(),
        os: fc.anything(),
        restartPolicy: fc.anything(),
      },
      { requiredKeys: [] },
    )
    const odd = fc.record(
      {
        replicas: fc.anything(),
        strategy: fc.anything(),
        failover: fc.anything(),
        checkpoint: fc.oneof(
          fc.anything(),
          fc.record({ containers: fc.anything(), interval: fc.anything() }),
        ),
        hotBackup: fc.anything(),
        service: fc.oneof(fc.anything(), fc.record({ ports: fc.array(fc.object()) })),
        template: fc.oneof(
          fc.anything(),
          fc.record({ metadata: fc.anything(), spec: fc.oneof(fc.anything(), pod) }),
        ),
      },
      { requiredKeys: [] },
    )
    fc.assert(fc.property(fc.oneof(fc.anything(), odd), spec => typeof parse(spec).ok === 'boolean'))
  })
})
