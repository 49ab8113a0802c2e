/** Sets that are refused, each with what is wrong, the object, and what the message must say about the way out. */

export const container = { name: 'app', image: 'app' }

/** A valid object with one thing changed: `spec`, `template`, its `metadata` or its `pod`. */
export function set(
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

/** By our own fields and rules. */
export const rejected: readonly [string, object, RegExp][] = [
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
export const rejectedInsideThePod: readonly [string, object, RegExp][] = [
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
