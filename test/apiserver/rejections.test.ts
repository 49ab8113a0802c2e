import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type BackupPodSet, backupPodSets } from '../../src/api/backuppodset.ts'
import { parseSet } from '../../src/api/parse.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { isKubeError } from '../../src/kube/errors.ts'

let api: Api
beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: inject('kubeconfig') }) })
})
afterAll(() => api.close())

const container = { name: 'app', image: 'app' }

/** A valid object with one thing changed: `spec`, `template`, its `metadata` or its `pod`. */
function set(
  change: { name?: string; spec?: object; template?: object; metadata?: object; pod?: object } = {},
) {
  const pod = { containers: [container], ...change.pod }
  const template = {
    ...(change.metadata ? { metadata: change.metadata } : {}),
    spec: pod,
    ...change.template,
  }
  return {
    apiVersion: 'backup.example.com/v1alpha1',
    kind: 'BackupPodSet',
    metadata: { name: change.name ?? 'set' },
    spec: { template, ...change.spec },
  }
}

const dryRun = (body: object) =>
  api.create<BackupPodSet>(backupPodSets, body, { namespace: 'default', dryRun: true })

async function refusal(body: object): Promise<string> {
  try {
    await dryRun(body)
  } catch (error) {
    if (isKubeError(error, 'Invalid', 'BadRequest')) return error.message
    throw error
  }
  throw new Error('was accepted')
}

/** What is wrong, the object, and what the message must say about the way out. */
const rejected: readonly [string, object, RegExp][] = [
  ['a name over 50 characters', set({ name: 'x'.repeat(51) }), /choose a name of at most 50 characters/],
  ['negative replicas', set({ spec: { replicas: -1 } }), /spec\.replicas.*greater than or equal to 0/],
  ['negative hotBackups', set({ spec: { hotBackups: -1 } }), /spec\.hotBackups.*greater than or equal to 0/],
  [
    'negative coldBackups',
    set({ spec: { coldBackups: -3 } }),
    /spec\.coldBackups.*greater than or equal to 0/,
  ],
  ['too many replicas', set({ spec: { replicas: 10_001 } }), /spec\.replicas.*less than or equal to 10000/],
  ['replicas that are text', set({ spec: { replicas: 'two' } }), /spec\.replicas.*must be of type integer/],
  [
    'replicas that are not whole',
    set({ spec: { replicas: 1.5 } }),
    /spec\.replicas.*must be of type integer/,
  ],
  [
    'an unknown strategy',
    set({ spec: { strategy: { hotbackupToReplicas: 'best' } } }),
    /spec\.strategy\.hotbackupToReplicas.*supported values: "random", "oldest", "newest", "spread"/,
  ],
  [
    'a strategy in capitals',
    set({ spec: { strategy: { coldbackupToReplicas: 'Random' } } }),
    /spec\.strategy\.coldbackupToReplicas.*supported values/,
  ],
  [
    'a choice of pods where there are none yet',
    set({ spec: { strategy: { init: 'oldest' } } }),
    /spec\.strategy\.init.*supported values: "random", "spread"/,
  ],
  [
    'a strategy that is no object',
    set({ spec: { strategy: 'random' } }),
    /spec\.strategy.*must be of type object/,
  ],
  ['an empty schedulerName', set({ spec: { schedulerName: '' } }), /spec\.schedulerName.*at least 1 chars/],
  ['wakeupTimeout 0', set({ spec: { wakeupTimeout: 0 } }), /spec\.wakeupTimeout.*greater than or equal to 1/],
  [
    'wakeupTimeout of an hour',
    set({ spec: { wakeupTimeout: 3600 } }),
    /spec\.wakeupTimeout.*less than or equal to 300/,
  ],
  [
    'wakeupTimeout with a unit',
    set({ spec: { wakeupTimeout: '5s' } }),
    /spec\.wakeupTimeout.*must be of type integer/,
  ],
  [
    'an unknown gatePosition',
    set({ spec: { gatePosition: 'Middle' } }),
    /spec\.gatePosition.*supported values: "First", "Last"/,
  ],
  [
    'an unknown antiAffinity',
    set({ spec: { antiAffinity: 'Hard' } }),
    /spec\.antiAffinity.*supported values: "Preferred", "Required", "None"/,
  ],
  [
    'an unknown updateStrategy',
    set({ spec: { updateStrategy: { type: 'Recreate' } } }),
    /spec\.updateStrategy\.type.*supported values: "RollingUpdate", "OnDelete"/,
  ],
  [
    'negative unreadySeconds',
    set({ spec: { failover: { unreadySeconds: -1 } } }),
    /spec\.failover\.unreadySeconds.*greater than or equal to 0/,
  ],
  [
    'an unknown crashLoop',
    set({ spec: { failover: { crashLoop: 'Delete' } } }),
    /spec\.failover\.crashLoop.*supported values: "Replace", "Ignore"/,
  ],
  ['paused that is text', set({ spec: { paused: 'yes' } }), /spec\.paused.*must be of type boolean/],
  ['no template', { ...set(), spec: { replicas: 1 } }, /spec\.template: Required value/],
  ['no spec', { ...set(), spec: undefined }, /spec: Required value/],
  [
    'a template without spec',
    { ...set(), spec: { template: { metadata: {} } } },
    /spec\.template\.spec: Required value/,
  ],
  [
    'a pod without containers',
    set({ pod: { containers: [] } }),
    /name at least one container in template\.spec\.containers/,
  ],
  [
    'a container without name',
    set({ pod: { containers: [{ image: 'app' }] } }),
    /containers\[0\]\.name: Required value/,
  ],
  [
    'a container that is called as the gate',
    set({ pod: { containers: [{ ...container, name: 'understudy-gate' }] } }),
    /containers\[0\]\.name: .*rename the container understudy-gate/,
  ],
  [
    'an init container that is called as the gate',
    set({ pod: { initContainers: [{ ...container, name: 'understudy-gate' }] } }),
    /initContainers\[0\]\.name: .*rename the container understudy-gate/,
  ],
  [
    'a container name in capitals',
    set({ pod: { containers: [{ ...container, name: 'App' }] } }),
    /containers\[0\]\.name: .*at most 63 lower-case letters, digits and -/,
  ],
  [
    'a container name of 64 characters',
    set({ pod: { containers: [container, { ...container, name: 'x'.repeat(64) }] } }),
    /containers\[1\]\.name: .*at most 63/,
  ],
  [
    'a container without image',
    set({ pod: { containers: [{ name: 'app' }] } }),
    /containers\[0\]\.image: .*name the image of the container/,
  ],
  [
    'an init container with an empty image',
    set({ pod: { initContainers: [{ name: 'init', image: '' }] } }),
    /initContainers\[0\]\.image: .*name the image of the container/,
  ],
  [
    'a sidecar on the port of the gate beside it',
    set({
      pod: {
        initContainers: [
          { ...container, name: 'proxy', restartPolicy: 'Always', ports: [{ containerPort: 20_000 }] },
        ],
      },
      spec: { gatePosition: 'Last', coldBackups: 1 },
    }),
    /give the sidecar another port than 20000, or set gatePosition to First/,
  ],
  [
    'the label type',
    set({ metadata: { labels: { type: 'web' } } }),
    /remove the label type from template\.metadata\.labels/,
  ],
  [
    'a label of ours',
    set({ metadata: { labels: { 'backup.example.com/slot': '1' } } }),
    /remove what begins with backup\.example\.com\/ from template\.metadata\.labels/,
  ],
  [
    'an annotation of ours',
    set({ metadata: { annotations: { 'backup.example.com/epoch': '1' } } }),
    /remove what begins with backup\.example\.com\/ from template\.metadata\.annotations/,
  ],
  [
    'a label with a space',
    set({ metadata: { labels: { app: 'my app' } } }),
    /template\.metadata\.labels\[app\]: .*at most 63 letters, digits/,
  ],
  [
    'a label of 64 characters',
    set({ metadata: { labels: { app: 'x'.repeat(64) } } }),
    /template\.metadata\.labels\[app\]: .*at most 63 letters, digits/,
  ],
  [
    'a name to be generated',
    set({ metadata: { generateName: 'web-' } }),
    /remove template\.metadata\.generateName: pods are named <set>-<12 hex digits>/,
  ],
  [
    'another namespace',
    set({ metadata: { namespace: 'other' } }),
    /remove template\.metadata\.namespace: pods are made in the namespace of their set/,
  ],
  [
    'finalizers',
    set({ metadata: { finalizers: ['example.com/wait'] } }),
    /remove template\.metadata\.finalizers: lost pods would stay/,
  ],
  [
    'another owner',
    set({ metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' }] } }),
    /remove template\.metadata\.ownerReferences: the set owns its pods/,
  ],
  [
    'a label that is a number',
    set({ metadata: { labels: { app: 1 } } }),
    /template\.metadata\.labels\.app.*must be of type string/,
  ],
  [
    'restartPolicy Never',
    set({ pod: { restartPolicy: 'Never' } }),
    /set template\.spec\.restartPolicy to Always or leave it out/,
  ],
  [
    'restartPolicy OnFailure',
    set({ pod: { restartPolicy: 'OnFailure' } }),
    /set template\.spec\.restartPolicy to Always or leave it out/,
  ],
  [
    'a node name',
    set({ pod: { nodeName: 'n1' } }),
    /remove template\.spec\.nodeName.*use nodeSelector or affinity/,
  ],
  [
    'ephemeral containers',
    set({ pod: { ephemeralContainers: [container] } }),
    /remove template\.spec\.ephemeralContainers/,
  ],
  [
    'an active deadline',
    set({ pod: { activeDeadlineSeconds: 60 } }),
    /remove template\.spec\.activeDeadlineSeconds/,
  ],
  [
    'Windows',
    set({ pod: { os: { name: 'windows' } } }),
    /set template\.spec\.os\.name to linux or leave it out/,
  ],
  [
    'gates on the network of the node',
    set({ pod: { hostNetwork: true }, spec: { coldBackups: 1 } }),
    /set coldBackups to 0 or remove template\.spec\.hostNetwork/,
  ],
  [
    'two different schedulers',
    set({ pod: { schedulerName: 'other' } }),
    /name the scheduler in spec\.schedulerName and remove template\.spec\.schedulerName/,
  ],
]

/** What only Kubernetes' own schema of the pod knows: nothing of it is the operator's business. */
const rejectedInsideThePod: readonly [string, object, RegExp][] = [
  [
    'a port that is text',
    set({ pod: { containers: [{ ...container, ports: [{ containerPort: 'http' }] }] } }),
    /containers\[0\]\.ports\[0\]\.containerPort.*must be of type integer/,
  ],
  [
    'memory with a space',
    set({ pod: { containers: [{ ...container, resources: { limits: { memory: '64 MB' } } }] } }),
    /containers\[0\]\.resources\.limits\.memory: Invalid value: "64 MB"/,
  ],
  [
    'two containers of one name',
    set({ pod: { containers: [container, container] } }),
    /containers\[1\]: Duplicate value/,
  ],
  [
    'a negative grace period',
    set({ pod: { terminationGracePeriodSeconds: -1 } }),
    /terminationGracePeriodSeconds.*greater than or equal to 0/,
  ],
  [
    'a toleration that is text',
    set({ pod: { tolerations: ['all'] } }),
    /tolerations\[0\].*must be of type object/,
  ],
]

describe('F02: bad input is refused with a message that says what to change', () => {
  it('there are at least 25 cases', () => expect(rejected.length).toBeGreaterThanOrEqual(25))
  it.each(rejected)('%s', async (_, body, message) => {
    expect(await refusal(body)).toMatch(message)
    // What is stored without this rule is refused by the operator, too.
    expect(parseSet(body as BackupPodSet)).toMatchObject({ ok: false })
  })
  it.each(rejectedInsideThePod)('%s', async (_, body, message) => {
    expect(await refusal(body)).toMatch(message)
  })

  it('the rules hold for changes as for new objects', async () => {
    const { metadata } = await api.create(backupPodSets, set({ name: 'change' }), { namespace: 'default' })
    const ref = { namespace: 'default', name: metadata.name }
    const change = (spec: object) => api.patch(backupPodSets, ref, { type: 'merge', body: { spec } })
    try {
      await expect(change({ replicas: -1 })).rejects.toThrow(/greater than or equal to 0/)
      await expect(change({ template: { spec: { nodeName: 'n' } } })).rejects.toThrow(/remove .*nodeName/)
      const scale = { type: 'merge', body: { spec: { replicas: -1 } } } as const
      await expect(api.patch(backupPodSets, ref, scale, { subresource: 'scale' })).rejects.toThrow(
        /spec\.replicas.*greater than or equal to 0/,
      )
      expect((await api.get(backupPodSets, ref)).metadata.generation).toBe(1)
    } finally {
      await api.delete(backupPodSets, ref)
    }
  })

  it('a generated name counts as a whole', async () => {
    const body = { ...set(), metadata: { generateName: 'x'.repeat(46) } }
    expect(await refusal(body)).toMatch(/choose a name of at most 50 characters/)
  })

  it.each([
    ['spec.hotbackups', set({ spec: { hotbackups: 2 } })],
    ['spec.strategy.hotBackupToReplicas', set({ spec: { strategy: { hotBackupToReplicas: 'random' } } })],
    [
      'spec.template.spec.containers[0].imagePullPolicyy',
      set({ pod: { containers: [{ ...container, imagePullPolicyy: 'Always' }] } }),
    ],
    [
      'spec.template.spec.containers[0].livenessProbe.httpGet.prot',
      set({ pod: { containers: [{ ...container, livenessProbe: { httpGet: { port: 80, prot: 1 } } }] } }),
    ],
  ])('the unknown field %s is named when the client asks for it, as kubectl does', async (field, body) => {
    const path = '/apis/backup.example.com/v1alpha1/namespaces/default/backuppodsets'
    const query = { dryRun: 'All', fieldValidation: 'Strict' }
    await expect(api.request('POST', path, { body, query })).rejects.toThrow(`unknown field "${field}"`)
    // Server-side apply never takes what it cannot own.
    await expect(
      api.patch(
        backupPodSets,
        { namespace: 'default', name: 'set' },
        { type: 'apply', body },
        { dryRun: true, fieldManager: 'test' },
      ),
    ).rejects.toThrow(/field not declared in schema/)
  })
})

describe('odd input that is meant', () => {
  it.each<[string, object]>([
    ['a parked set', set({ spec: { replicas: 0, hotBackups: 0, coldBackups: 0 } })],
    ['a name of 50 characters', set({ name: 'x'.repeat(50) })],
    [
      'quantities as numbers and as text',
      set({ pod: { containers: [{ ...container, resources: { limits: { cpu: 1, memory: '64Mi' } } }] } }),
    ],
    [
      'a port without protocol',
      set({ pod: { containers: [{ ...container, ports: [{ containerPort: 80 }] }] } }),
    ],
    [
      'what kubectl create --dry-run writes into templates',
      set({ metadata: { creationTimestamp: null, labels: { app: 'web' } } }),
    ],
    ['an empty label', set({ metadata: { labels: { app: '' } } })],
    [
      'a port of 20000 that is opened after the gate has gone',
      set({
        pod: { containers: [{ ...container, ports: [{ containerPort: 20_000 }] }] },
        spec: { coldBackups: 1 },
      }),
    ],
    ['nothing where a default is', set({ spec: { strategy: null, replicas: null, failover: null } })],
    ['no grace', set({ pod: { terminationGracePeriodSeconds: 0 } })],
    ['host network without cold backups', set({ pod: { hostNetwork: true } })],
    ['the same scheduler twice', set({ pod: { schedulerName: 'mine' }, spec: { schedulerName: 'mine' } })],
    [
      'a sidecar',
      set({ pod: { initContainers: [{ ...container, name: 'sidecar', restartPolicy: 'Always' }] } }),
    ],
  ])('%s', async (_, body) => {
    const stored = await dryRun(body)
    expect(parseSet(stored)).toMatchObject({ ok: true })
  })

  it('the schema fills in every default, so that parsing adds nothing', async () => {
    const stored = await dryRun(set())
    const { template: _, updateStrategy, ...spec } = stored.spec
    const parsed = parseSet(stored)
    expect(parsed).toMatchObject({ ok: true, set: { ...spec, updateStrategy: updateStrategy?.type } })
    expect(spec).toMatchObject({ replicas: 1, hotBackups: 0, coldBackups: 0, wakeupTimeout: 5 })
  })
})
