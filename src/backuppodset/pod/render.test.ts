// Long because it is a list of templates and the pods that come of them.
import { describe, expect, it } from 'vitest'
import type { BackupPodSet, BackupPodSetSpec, PodTemplate } from '../../api/backuppodset.ts'
import { gatePort } from '../../api/gate.ts'
import type { PodKind } from '../../api/labels.ts'
import { type ParsedSet, parseSet } from '../../api/parse.ts'
import { isUnderstudy, stageLabel, stageReady } from '../../api/pod-contract.ts'
import type { Pod } from '../../kube/resources.ts'
import { mayRunOn } from '../../slot/decide/may-run-on.ts'
import { renderPod } from './render.ts'
import { signalNumber } from './stop-signal.ts'
import { templateHash } from './template-hash.ts'

const parsed = (pod: object, spec: Partial<BackupPodSetSpec> = {}): ParsedSet => {
  const template = { spec: { containers: [{ name: 'app', image: 'app' }], ...pod } } as PodTemplate
  const metadata = { name: 'web', namespace: 'shop', uid: 'u', resourceVersion: '1' }
  const result = parseSet({ metadata, spec: { ...spec, template } } as BackupPodSet)
  if (!result.ok) throw new Error(result.message)
  return result.set
}
const settings = { wakerImage: 'waker:1', wakeKeys: [new Uint8Array(32)] } as const
const render = (set: ParsedSet, kind: PodKind) =>
  renderPod(set, { type: 'create', kind, name: 'web-1', strategy: 'random', role: undefined }, settings)
const kept = (pod: object = {}, spec: Partial<BackupPodSetSpec> = {}) =>
  parsed(pod, { antiAffinity: 'None', checkpoint: {}, ...spec })
const containerOf = (pod: ReturnType<typeof render>) => pod.spec?.containers[0]
const onStage = { key: 'backup.example.com/stage', operator: 'In', values: ['ready'] }

describe('without checkpoint', () => {
  it.each<PodKind>(['primary', 'hotbackup', 'coldbackup'])('a %s is the template and nothing else', kind => {
    const set = parsed({}, { antiAffinity: 'None' })
    const { initContainers, ...spec } = render(set, kind).spec ?? {}
    expect(spec).toEqual({ ...set.template.spec, schedulerName: 'default-scheduler' })
    expect(initContainers?.map(({ name }) => name)).toEqual(
      kind === 'coldbackup' ? ['understudy-gate'] : undefined,
    )
  })

  it.each<PodKind>(['primary', 'hotbackup', 'coldbackup'])('a %s says so in both labels', kind => {
    expect(render(parsed({}), kind).metadata?.labels).toMatchObject({
      type: kind,
      'backup.example.com/role': kind,
    })
  })

  it('D6.warm: mode Warm is the same, with the same hash', () => {
    const warm = parsed({}, { antiAffinity: 'None', checkpoint: {}, hotBackup: { mode: 'Warm' } })
    const paper = parsed({}, { antiAffinity: 'None' })
    expect(render(warm, 'hotbackup')).toEqual(render(paper, 'hotbackup'))
  })

  it('the hash is that of the template alone, as it was before there was memory', () => {
    expect(templateHash(parsed({}))).toBe('2fd32adf59')
  })
})

describe('a primary whose memory is kept', () => {
  it('D6.primary: runs the template, where its memory can be saved', () => {
    const set = kept({ hostname: 'x' })
    expect(render(set, 'primary')).toMatchObject({
      metadata: { annotations: { 'backup.example.com/memory': 'kept' } },
    })
    expect(render(set, 'primary').spec).toEqual({
      ...set.template.spec,
      schedulerName: 'default-scheduler',
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 100, preference: { matchExpressions: [onStage] } },
          ],
        },
      },
    })
  })

  it('keeps the seccomp profile that the template names', () => {
    const securityContext = { runAsUser: 1000, seccompProfile: { type: 'Unconfined' } }
    for (const kind of ['primary', 'hotbackup'] as const)
      expect(render(kept({ securityContext }), kind).spec?.securityContext).toEqual(securityContext)
  })

  it('is made anew when keeping begins or ends, and not when its pace or mode changes', () => {
    const hash = (spec: Partial<BackupPodSetSpec>) => templateHash(kept({}, spec))
    expect(hash({})).not.toBe(templateHash(parsed({})))
    expect(hash({ checkpoint: { containers: ['app'] } })).toBe(hash({}))
    expect(hash({ checkpoint: { interval: '1s' }, hotBackup: { mode: 'Staged' } })).toBe(hash({}))
  })
})

describe('an understudy', () => {
  it('D6.hot: holds the stage in place of the app, with the words of the template', () => {
    const app = {
      name: 'app',
      image: 'app',
      command: ['/app', '$(PORT)'],
      args: ['--verbose'],
      securityContext: { runAsUser: 1000, readOnlyRootFilesystem: true },
      volumeMounts: [{ name: 'data', mountPath: '/data' }],
      ports: [{ containerPort: 80 }],
      resources: { limits: { memory: '1Gi' } },
      workingDir: '/data',
    }
    const probe = { httpGet: { port: 80 } }
    const probes = { livenessProbe: probe, readinessProbe: probe, startupProbe: probe }
    const set = kept({ containers: [{ ...app, ...probes }], volumes: [{ name: 'data', emptyDir: {} }] })
    const pod = render(set, 'hotbackup')
    expect(containerOf(pod)).toEqual({
      ...app,
      command: [
        ...['/.understudy/waker', 'hold', '--dir', '/.understudy/run-app', '--'],
        ...['/app', '$(PORT)'],
      ],
      volumeMounts: [
        ...app.volumeMounts,
        { name: 'understudy-hold', mountPath: '/.understudy', subPath: 'app' },
      ],
    })
    expect(pod.spec?.volumes).toEqual([
      { name: 'data', emptyDir: {} },
      { name: 'understudy-hold', emptyDir: {} },
    ])
    expect(pod.spec?.readinessGates).toEqual([{ conditionType: 'backup.example.com/serving' }])
    const http = { httpGet: { port: 80 } }
    expect(pod.metadata?.annotations).toEqual({
      'backup.example.com/memory': 'kept',
      'backup.example.com/saved-containers': 'app',
      'backup.example.com/probes': JSON.stringify({
        app: { startupProbe: http, readinessProbe: http, livenessProbe: http },
      }),
    })
    expect(pod.metadata?.labels?.['backup.example.com/restore-hash']).toMatch(/^[0-9a-f]{16}$/)
  })

  it.each([
    ['nothing but the image', {}, undefined],
    ['args for the entrypoint of the image', { args: ['--port', '1'] }, ['--port', '1']],
  ])('of a template with %s leaves the program to the order', (_, words, args) => {
    const container = containerOf(
      render(kept({ containers: [{ name: 'app', image: 'a', ...words }] }), 'hotbackup'),
    )
    expect(container?.command?.at(-1)).toBe('--')
    expect(container?.args).toEqual(args)
  })

  it('runs the containers whose memory is not kept, as the template has them', () => {
    const probe = { tcpSocket: { port: 1 } }
    const containers = [
      { name: 'app', image: 'app' },
      { name: 'shipper', image: 'shipper', command: ['/ship'], livenessProbe: probe },
    ]
    const pod = render(kept({ containers }, { checkpoint: { containers: ['app'] } }), 'hotbackup')
    expect(containerOf(pod)?.command).toContain('hold')
    expect(pod.spec?.containers[1]).toEqual(containers[1])
  })

  it('D6.hot: has the waker put in place by its first init container, which has no rights at all', () => {
    const init = render(kept({ initContainers: [{ name: 'own', image: 'own' }] }), 'hotbackup').spec
      ?.initContainers
    expect(init?.map(({ name }) => name)).toEqual(['understudy-hold', 'own'])
    expect(init?.[0]).toMatchObject({
      image: 'waker:1',
      command: ['/waker', 'install', '/.understudy/app'],
      volumeMounts: [{ name: 'understudy-hold', mountPath: '/.understudy' }],
      securityContext: { runAsNonRoot: true, capabilities: { drop: ['ALL'] }, readOnlyRootFilesystem: true },
    })
    expect(init?.[0]).not.toHaveProperty('resources')
  })

  it('keeps the quality of service: limits as requests where the template has some', () => {
    const resources = { limits: { memory: '1Gi', cpu: '1' } }
    const set = kept({ containers: [{ name: 'app', image: 'app', resources }] })
    // The start of runc 1.1 needs 16 MiB on control groups of version 2; runtimes with a minimum use 12 MiB.
    const small = { cpu: '10m', memory: '32Mi' }
    for (const kind of ['coldbackup', 'hotbackup'] as const)
      for (const container of render(set, kind).spec?.initContainers ?? [])
        expect(container.resources).toEqual({ requests: small, limits: small })
  })

  it('runs no postStart, keeps preStop, and ends by the signal of the template', () => {
    const exec = { exec: { command: ['/bye'] } }
    const lifecycle = { postStart: exec, preStop: exec, stopSignal: 'SIGUSR1' }
    const of = (lifecycle: object) =>
      containerOf(render(kept({ containers: [{ name: 'app', image: 'a', lifecycle }] }), 'hotbackup'))
    const gated = {
      exec: { command: ['/.understudy/waker', 'if-app', '--dir', '/.understudy/run-app', '--', '/bye'] },
    }
    expect(of(lifecycle)?.lifecycle).toEqual({ preStop: gated, stopSignal: 'SIGUSR1' })
    const sleep = { sleep: { seconds: 1 } }
    expect(of({ preStop: sleep })?.lifecycle).toEqual({ preStop: sleep })
    expect(of(lifecycle)?.command).toContain('--stop-signal')
    expect(of({ postStart: exec })).not.toHaveProperty('lifecycle')
  })

  it('goes only where memory can be brought back, whichever term of the template holds', () => {
    const zone = { key: 'zone', operator: 'In', values: ['a'] }
    const terms = [{ matchExpressions: [zone] }, { matchFields: [zone] }, {}]
    const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } }
    const of = (pod: object) =>
      render(kept(pod), 'hotbackup').spec?.affinity?.nodeAffinity
        ?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
    expect(of({})).toEqual([{ matchExpressions: [onStage] }])
    expect(of({ affinity: { nodeAffinity } })).toEqual([
      { matchExpressions: [zone, onStage] },
      { matchFields: [zone], matchExpressions: [onStage] },
      {},
    ])
  })

  it('D6.distance: keeps its distance to primaries', () => {
    const set = kept({}, { antiAffinity: 'Required' })
    expect(render(set, 'hotbackup').spec?.affinity).toMatchObject({
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: {} },
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { labelSelector: { matchExpressions: [{ key: 'type', values: ['primary'] }] } },
        ],
      },
    })
  })
})

describe('a hot backup that is made where a slot needs an heir', () => {
  const hotOf = (set: ParsedSet, besidePrimary: boolean) =>
    renderPod(
      set,
      {
        ...{ type: 'create', kind: 'hotbackup', name: 'web-1', strategy: 'random', role: undefined },
        near: { nodes: ['a', 'b'], besidePrimary },
      },
      settings,
    )
  const apart = (weight: number) => expect.objectContaining({ weight })

  it('prefers these nodes, and is otherwise the same pod', () => {
    const set = kept({}, { antiAffinity: 'Preferred' })
    const { metadata, spec } = hotOf(set, false)
    const plain = render(set, 'hotbackup')
    expect(metadata).toEqual(plain.metadata)
    expect(spec?.affinity?.nodeAffinity).toEqual({
      ...plain.spec?.affinity?.nodeAffinity,
      preferredDuringSchedulingIgnoredDuringExecution: [
        {
          weight: 100,
          preference: { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] },
        },
        {
          weight: 90,
          preference: { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['b'] }] },
        },
      ],
    })
    expect({ ...spec, affinity: spec?.affinity?.podAntiAffinity }).toEqual({
      ...plain.spec,
      affinity: plain.spec?.affinity?.podAntiAffinity,
    })
  })

  it('prefers no distance to primaries where the best node has one; a required distance stays', () => {
    const distance = (antiAffinity: 'Preferred' | 'Required', besidePrimary: boolean) =>
      hotOf(kept({}, { antiAffinity }), besidePrimary).spec?.affinity?.podAntiAffinity
    expect(distance('Preferred', false)?.preferredDuringSchedulingIgnoredDuringExecution).toEqual([
      apart(100),
    ])
    expect(distance('Preferred', true)).toBeUndefined()
    expect(distance('Required', true)).toEqual(distance('Required', false))
  })
})

describe('a cold backup of a set that keeps memory', () => {
  const initOf = (gatePosition: 'First' | 'Last') =>
    render(
      kept({ initContainers: [{ name: 'own', image: 'own' }] }, { gatePosition }),
      'coldbackup',
    ).spec?.initContainers?.map(({ name }) => name)

  it('D6.understudy: is an understudy behind a gate', () => {
    const pod = render(kept(), 'coldbackup')
    expect(containerOf(pod)?.command?.slice(0, 2)).toEqual(['/.understudy/waker', 'hold'])
    expect(pod.spec?.readinessGates).toHaveLength(1)
    expect(initOf('First')).toEqual(['understudy-gate', 'own'])
    expect(initOf('Last')).toEqual(['own', 'understudy-gate'])
    expect(isUnderstudy(pod as Pod)).toBe(true)
    expect(isUnderstudy(render(parsed({}), 'coldbackup') as Pod)).toBe(false)
  })

  it('its gate stays, unless the template has its port', () => {
    const [stays] = render(parsed({}), 'coldbackup').spec?.initContainers ?? []
    expect(stays).toMatchObject({
      restartPolicy: 'Always',
      startupProbe: { httpGet: { path: '/opened', port: gatePort }, periodSeconds: 1 },
    })
    expect(stays?.command).toContain('--stay')
    const container = { name: 'app', image: 'app', ports: [{ containerPort: gatePort }] }
    const [ends] = render(parsed({ containers: [container] }), 'coldbackup').spec?.initContainers ?? []
    expect(ends).not.toHaveProperty('restartPolicy')
    expect(ends).not.toHaveProperty('startupProbe')
    expect(ends?.command).not.toContain('--stay')
  })

  it('D6.cold-gate: its gate puts the waker in place, and has a second door for its node', () => {
    const [gate] = render(kept(), 'coldbackup').spec?.initContainers ?? []
    expect(gate?.command?.slice(6)).toEqual([
      '--install',
      '/.understudy/app',
      '--socket',
      '/.understudy/gate.sock',
      '--stay',
    ])
    expect(gate?.volumeMounts).toEqual([{ name: 'understudy-hold', mountPath: '/.understudy' }])
    expect(render(parsed({}), 'coldbackup').spec?.initContainers?.[0]?.command).not.toContain('--install')
  })

  it('made for a move runs on no node whose labels the template, or the move, does not select', () => {
    const body = renderPod(
      kept({ nodeSelector: { disk: 'small' } }),
      {
        ...{ type: 'create', kind: 'hotbackup', name: 'bps-1', strategy: 'random', role: undefined },
        successorOf: { slot: 3, near: [], notOn: 'c', nodeSelector: { disk: 'big' } },
      },
      settings,
    )
    const runsOn = (disk: string) =>
      mayRunOn(body.spec, { name: 'a', labels: { disk, [stageLabel]: stageReady }, taints: [] })
    expect([runsOn('small'), runsOn('big')]).toEqual([false, false])
    expect(body.metadata?.annotations?.['backup.example.com/confined']).toBe('yes')
  })

  it("made for a slot that has none left goes to who has its memory, the newest first, and is no other slot's, nor on its primary's node", () => {
    const body = renderPod(
      kept(),
      {
        type: 'create',
        kind: 'hotbackup',
        name: 'bps-1',
        strategy: 'random',
        role: undefined,
        successorOf: { slot: 3, near: ['a', 'b'], notOn: 'c' },
      },
      settings,
    )
    const preferred = body.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution
    expect(preferred?.map(({ weight, preference }) => [weight, preference.matchFields?.[0]?.values])).toEqual(
      [
        [100, ['a']],
        [90, ['b']],
      ],
    )
    expect(body.metadata?.annotations?.['backup.example.com/successor-of']).toBe('3')
    expect(body.metadata?.annotations?.['backup.example.com/confined']).toBe('yes')
    const required = body.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
    expect(required?.nodeSelectorTerms).toEqual([
      {
        matchExpressions: [expect.objectContaining({ operator: 'In' })],
        matchFields: [{ key: 'metadata.name', operator: 'NotIn', values: ['c'] }],
      },
    ])
    expect(body.metadata?.labels).not.toHaveProperty('backup.example.com/slot')
    expect(containerOf(body)?.command?.[1]).toBe('hold')
  })
})

it.each([
  ['SIGTERM', 15],
  ['SIGQUIT', 3],
  ['SIGWINCH', 28],
  ['SIGSYS', 31],
  ['SIGPOLL', 29],
  ['SIGRTMIN', 34],
  ['SIGRTMIN+3', 37],
  ['SIGRTMAX-14', 50],
  ['SIGRTMAX+1', undefined],
  ['NOTHING', undefined],
  [undefined, undefined],
])('the number of %s', (name, number) => expect(signalNumber(name)).toBe(number))
