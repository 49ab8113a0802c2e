/**
 * Sets that the server must refuse: the mistake, the object, and what the message must say about the remedy.
 *
 * Long because it is a list: one broken set for each rule.
 */

import { rejectedHttpSources } from './rejected-http-sources.ts'

export const container = { name: 'app', image: 'app' }

/** Returns a valid object with one change: `spec`, `template`, its `metadata` or its `pod`. */
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

/** The same for a set that keeps memory. */
const kept = (pod: object = {}, spec: object = {}) => set({ pod, spec: { checkpoint: {}, ...spec } })
const withContainer = (more: object) => kept({ containers: [{ ...container, ...more }] })
const servedBy = (service: object) => set({ spec: { service: { ports: [{ port: 80 }], ...service } } })
const warm = 'set hotBackup\\.mode to Warm or remove spec\\.checkpoint'

/** Refused by our own fields and rules. */
export const rejected: readonly [string, object, RegExp][] = [
  ...rejectedHttpSources,
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
  [
    'an unknown fencing',
    set({ spec: { failover: { fencing: 'Kill' } } }),
    /spec\.failover\.fencing.*supported values: "Freeze", "None"/,
  ],
  [
    'a nodeTimeout that is too short',
    set({ spec: { failover: { nodeTimeout: '900ms' } } }),
    /spec\.failover\.nodeTimeout: .*set failover\.nodeTimeout to a duration from 1s to 60s/,
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
    /add at least one container to template\.spec\.containers/,
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
    /containers\[0\]\.image: .*set the image of the container/,
  ],
  [
    'an init container with an empty image',
    set({ pod: { initContainers: [{ name: 'init', image: '' }] } }),
    /initContainers\[0\]\.image: .*set the image of the container/,
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
    /give the sidecar a port other than 20000, or set gatePosition to First/,
  ],
  [
    'the label type',
    set({ metadata: { labels: { type: 'web' } } }),
    /remove the label type from template\.metadata\.labels/,
  ],
  [
    'a label of ours',
    set({ metadata: { labels: { 'backup.example.com/slot': '1' } } }),
    /remove labels that begin with backup\.example\.com\/ from template\.metadata\.labels/,
  ],
  [
    'an annotation of ours',
    set({ metadata: { annotations: { 'backup.example.com/epoch': '1' } } }),
    /remove annotations that begin with backup\.example\.com\/ from template\.metadata\.annotations/,
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
    /remove template\.metadata\.namespace: pods are created in the namespace of their set/,
  ],
  [
    'finalizers',
    set({ metadata: { finalizers: ['example.com/wait'] } }),
    /remove template\.metadata\.finalizers: lost pods would remain/,
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
    /set template\.spec\.restartPolicy to Always or remove it/,
  ],
  [
    'restartPolicy OnFailure',
    set({ pod: { restartPolicy: 'OnFailure' } }),
    /set template\.spec\.restartPolicy to Always or remove it/,
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
    /set template\.spec\.os\.name to linux or remove it/,
  ],
  [
    'gates on the network of the node',
    set({ pod: { hostNetwork: true }, spec: { coldBackups: 1 } }),
    /set coldBackups to 0 or remove template\.spec\.hostNetwork/,
  ],
  [
    'two different schedulers',
    set({ pod: { schedulerName: 'other' } }),
    /set spec\.schedulerName and remove template\.spec\.schedulerName/,
  ],
  [
    'memory on the network of the node',
    kept({ hostNetwork: true }),
    new RegExp(`remove hostNetwork, hostPID and hostIPC from template\\.spec, or ${warm}`),
  ],
  ...(
    [
      ['livenessProbe', 'httpGet', '127.0.0.1'],
      ['readinessProbe', 'tcpSocket', 'internal.example'],
      ['startupProbe', 'httpGet', '169.254.169.254'],
    ] as const
  ).map(([kind, handler, host]): [string, object, RegExp] => [
    `memory whose ${kind} asks another host`,
    withContainer({ [kind]: { [handler]: { port: 80, host } } }),
    new RegExp(`remove host from httpGet and tcpSocket of the container's probes, or ${warm}`),
  ]),
  ['memory among the processes of the node', kept({ hostPID: true }), /remove hostNetwork, hostPID/],
  ['memory in the IPC namespace of the node', kept({ hostIPC: true }), /remove hostNetwork, hostPID/],
  [
    'memory of containers that share processes',
    kept({ shareProcessNamespace: true }),
    new RegExp(`remove template\\.spec\\.shareProcessNamespace, or ${warm}`),
  ],
  [
    'memory in a user namespace',
    kept({ hostUsers: false }),
    new RegExp(`remove hostUsers: false from template\\.spec, or ${warm}`),
  ],
  [
    'memory of a privileged container',
    withContainer({ securityContext: { privileged: true } }),
    new RegExp(`remove privileged and capabilities such as SYS_ADMIN and SYS_PTRACE .*, or ${warm}`),
  ],
  [
    'memory of a container that may trace others',
    withContainer({ securityContext: { capabilities: { add: ['NET_ADMIN', 'cap_sys_ptrace'] } } }),
    /remove privileged and capabilities/,
  ],
  [
    'memory beside an init container with all capabilities',
    kept({
      initContainers: [{ ...container, name: 'i', securityContext: { capabilities: { add: ['ALL'] } } }],
    }),
    /remove privileged and capabilities/,
  ],
  [
    'memory on a terminal',
    withContainer({ tty: true }),
    new RegExp(`remove tty from the container, or ${warm}`),
  ],
  [
    'memory of a block device',
    withContainer({ volumeDevices: [{ name: 'disk', devicePath: '/dev/disk' }] }),
    new RegExp(`remove volumeDevices, resources\\.claims and limits of device plugins.*${warm}`),
  ],
  [
    'memory of a claimed device',
    withContainer({ resources: { claims: [{ name: 'gpu' }] } }),
    /remove volumeDevices, resources\.claims and limits of device plugins/,
  ],
  [
    "memory of a device plugin's device",
    withContainer({ resources: { limits: { 'example.com/gpu': 1 } } }),
    /remove volumeDevices, resources\.claims and limits of device plugins/,
  ],
  [
    'memory beside a claim of each pod',
    kept({ volumes: [{ name: 'data', ephemeral: { volumeClaimTemplate: { spec: {} } } }] }),
    new RegExp(`use emptyDir or a ReadWriteMany claim instead of ephemeral volumes, or ${warm}`),
  ],
  [
    'memory beside a disk',
    kept({ volumes: [{ name: 'data', iscsi: { targetPortal: 'a', iqn: 'b', lun: 0 } }] }),
    /use emptyDir instead of disk volumes and inline CSI volumes/,
  ],
  [
    'memory beside an inline CSI volume',
    kept({ volumes: [{ name: 'data', csi: { driver: 'a' } }] }),
    /use emptyDir instead of disk volumes and inline CSI volumes/,
  ],
  [
    'memory in huge pages',
    kept({
      containers: [{ ...container, resources: { limits: { 'hugepages-2Mi': '4Mi', memory: '64Mi' } } }],
    }),
    /remove limits of hugepages-\*/,
  ],
  [
    'memory beside a volume of huge pages',
    kept({ volumes: [{ name: 'huge', emptyDir: { medium: 'HugePages' } }] }),
    /emptyDir\.medium HugePages from the template/,
  ],
  [
    'memory below a path that differs between pods',
    kept({
      volumes: [{ name: 'data', emptyDir: {} }],
      containers: [
        { ...container, volumeMounts: [{ name: 'data', mountPath: '/d', subPathExpr: '$(POD)' }] },
      ],
    }),
    /use subPath instead of subPathExpr/,
  ],
  [
    'memory of a container with rules of its own for restarts',
    kept({ containers: [{ ...container, restartPolicy: 'Never' }] }),
    /remove restartPolicy and restartPolicyRules from the container/,
  ],
  [
    'a volume that is called as that of understudies',
    kept({ volumes: [{ name: 'understudy-hold', emptyDir: {} }] }),
    /rename the container or volume understudy-hold/,
  ],
  [
    'a container that is called as the first of understudies',
    kept({ initContainers: [{ ...container, name: 'understudy-hold' }] }),
    /rename the container or volume understudy-hold/,
  ],
  [
    'a mount in the place of that of understudies',
    kept({
      containers: [{ ...container, volumeMounts: [{ name: 'x', mountPath: '/.understudy' }] }],
      volumes: [{ name: 'x', emptyDir: {} }],
    }),
    /mount the volume outside \/\.understudy/,
  ],
  [
    'a container to be saved that there is not',
    kept({}, { checkpoint: { containers: ['app', 'other'] } }),
    /list only containers of template\.spec\.containers in checkpoint\.containers/,
  ],
  [
    'no container to be saved',
    kept({}, { checkpoint: { containers: [] } }),
    /spec\.checkpoint\.containers.*at least 1 items/,
  ],
  [
    'a clone that is not saved itself',
    set({ spec: { cloneFrom: { pod: 'web-x' } } }),
    /add spec\.checkpoint with source criu .*or remove cloneFrom/,
  ],
  ['a clone of no pod', kept({}, { cloneFrom: {} }), /spec\.cloneFrom\.pod.*Required value/],
  ['a clone of a pod without name', kept({}, { cloneFrom: { pod: '' } }), /cloneFrom\.pod.*at least 1 chars/],
  [
    'a clone whose hot backups are to be warm',
    kept({}, { cloneFrom: { pod: 'web-x' }, hotBackup: { mode: 'Warm' } }),
    /add spec\.checkpoint with source criu .*or remove cloneFrom/,
  ],
  [
    'checkpoints ten times a second',
    kept({}, { checkpoint: { interval: '100ms' } }),
    /spec\.checkpoint\.interval: .*set checkpoint\.interval to a duration from 200ms to 1h/,
  ],
  [
    'checkpoints once a day',
    kept({}, { checkpoint: { interval: '24h' } }),
    /set checkpoint\.interval to a duration from 200ms to 1h/,
  ],
  [
    'an interval without unit',
    kept({}, { checkpoint: { interval: '10' } }),
    /spec\.checkpoint\.interval.*should match/,
  ],
  [
    'a primary that stands still most of the time',
    kept({}, { checkpoint: { maxFreezePercent: 60 } }),
    /spec\.checkpoint\.maxFreezePercent.*less than or equal to 50/,
  ],
  [
    'six copies',
    kept({}, { checkpoint: { copies: 6 } }),
    /spec\.checkpoint\.copies.*less than or equal to 5/,
  ],
  [
    'no generation',
    kept({}, { checkpoint: { keep: 0 } }),
    /spec\.checkpoint\.keep.*greater than or equal to 1/,
  ],
  [
    'a size of volumes with a space',
    kept({}, { checkpoint: { volumes: { maxSize: '1 Gi' } } }),
    /spec\.checkpoint\.volumes\.maxSize.*should match/,
  ],
  [
    'frozen hot backups of a memory that is not kept',
    set({ spec: { hotBackup: { mode: 'Frozen' } } }),
    /add spec\.checkpoint \(checkpoint: \{\} is enough\), or set hotBackup\.mode to Warm/,
  ],
  [
    'an unknown mode of hot backups',
    kept({}, { hotBackup: { mode: 'Live' } }),
    /spec\.hotBackup\.mode.*supported values: "Frozen", "Staged", "Warm"/,
  ],
  [
    'state that may be lost where nothing is rolled',
    kept({}, { updateStrategy: { allowStateLoss: true } }),
    /set updateStrategy\.type to RollingUpdate, or remove updateStrategy\.allowStateLoss/,
  ],
  [
    'state that may be lost where none is kept',
    set({ spec: { updateStrategy: { type: 'RollingUpdate', allowStateLoss: true } } }),
    /add spec\.checkpoint, or remove updateStrategy\.allowStateLoss/,
  ],
  [
    "an agent's clock without agents",
    set({
      spec: { failover: { liveness: { periodMilliseconds: 100 } } },
      pod: { containers: [{ ...container, livenessProbe: { tcpSocket: { port: 80 } } }] },
    }),
    /add spec\.checkpoint, or remove failover\.liveness/,
  ],
  [
    'an agent that has nothing to ask',
    kept(
      { containers: [{ ...container, livenessProbe: { exec: { command: ['/ok'] } } }] },
      { failover: { liveness: {} } },
    ),
    /add a livenessProbe with httpGet, tcpSocket or grpc to a container/,
  ],
  [
    'a clock too fast for an agent',
    kept(
      { containers: [{ ...container, livenessProbe: { tcpSocket: { port: 80 } } }] },
      { failover: { liveness: { periodMilliseconds: 10 } } },
    ),
    /spec\.failover\.liveness\.periodMilliseconds.*greater than or equal to 50/,
  ],
  ['a Service for nobody', servedBy({}), /set service\.name for one Service for all primaries/],
  ['a Service without ports', servedBy({ name: 'web', ports: [] }), /spec\.service\.ports.*at least 1 items/],
  [
    'a Service of an unknown type',
    servedBy({ name: 'web', type: 'ExternalName' }),
    /spec\.service\.type.*supported values: "ClusterIP", "NodePort", "LoadBalancer"/,
  ],
  ['a Service in capitals', servedBy({ name: 'Web' }), /spec\.service\.name.*should match/],
  [
    'ports of a Service without names',
    servedBy({ name: 'web', ports: [{ port: 80 }, { port: 81 }] }),
    /give each of several service\.ports a unique name/,
  ],
  [
    'ports of a Service with one name',
    servedBy({
      name: 'web',
      ports: [
        { name: 'a', port: 80 },
        { name: 'a', port: 81 },
      ],
    }),
    /give each of several service\.ports a unique name/,
  ],
  [
    'one port of a Service twice',
    servedBy({
      name: 'web',
      ports: [
        { name: 'a', port: 80 },
        { name: 'b', port: 80, protocol: 'TCP' },
      ],
    }),
    /give each of several service\.ports .* a unique number or protocol/,
  ],
  [
    'a target port by name',
    servedBy({ name: 'web', ports: [{ port: 80, targetPort: 'http' }] }),
    /spec\.service\.ports\[0\]\.targetPort.*must be of type integer/,
  ],
  [
    'Services of slots of a set whose name no Service may have',
    { ...servedBy({ perSlot: true }), metadata: { name: 'a.b' } },
    /choose a name for the set that begins with a letter and has no dots/,
  ],
  [
    'a Service that is called as that of a slot',
    servedBy({ name: 'set-3', perSlot: true }),
    /choose another service\.name: the Service of a slot is named <set>-<number>/,
  ],
  [
    'a readiness gate of ours',
    set({ pod: { readinessGates: [{ conditionType: 'backup.example.com/serving' }] } }),
    /remove gates that begin with backup\.example\.com\/ from template\.spec\.readinessGates/,
  ],
]

/** Refused only by Kubernetes' own schema of the pod; the operator checks none of these. */
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
