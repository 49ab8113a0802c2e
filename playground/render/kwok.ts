import { stringify } from 'yaml'

/**
 * Behaviour of fake nodes and pods, as KWOK's stages: the state of an object to which a stage applies, and the state
 * that results. A pod is Running and Ready at once. A pod with a gate stays behind it, because nothing can open a fake
 * gate. It can be reached, at the address of the fake node: see `kwok-gates.ts`.
 */

const isUndeleted = { key: '.metadata.deletionTimestamp', operator: 'DoesNotExist' }
const isPending = { key: '.status.phase', operator: 'In', values: ['Pending'] }
const hasNoAddress = { key: '.status.podIP', operator: 'DoesNotExist' }
const GATE = 'understudy-gate'
const initNames = '.spec.initContainers.[].name'

const timestamp = '{{ Now | Quote }}'

const nodeStatus = `
phase: Running
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: ${timestamp}
  lastTransitionTime: ${timestamp}
{{ end }}
addresses:
- type: InternalIP
  address: {{ NodeIP | Quote }}
- type: Hostname
  address: {{ NodeName | Quote }}
capacity: &size
  cpu: "64"
  memory: 256Gi
  pods: "1000"
allocatable: *size
nodeInfo:
  architecture: amd64
  operatingSystem: linux
  kubeletVersion: fake
  kubeProxyVersion: ""
  containerRuntimeVersion: fake
  kernelVersion: ""
  osImage: ""
  machineID: ""
  systemUUID: ""
  bootID: ""
`

const host = `
startTime: ${timestamp}
{{ with NodeIPsWith .spec.nodeName }}
hostIP: {{ index . 0 | Quote }}
{{ end }}
`

const gateAddresses = `
${host}
{{ with NodeIPsWith .spec.nodeName }}
podIP: {{ index . 0 | Quote }}
podIPs:
- ip: {{ index . 0 | Quote }}
{{ end }}
`

const addresses = `
${host}
{{ with PodIPsWith .spec.nodeName false ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) }}
podIP: {{ index . 0 | Quote }}
podIPs:
- ip: {{ index . 0 | Quote }}
{{ end }}
`

function conditions(status: Readonly<Record<string, string>>): string {
  const lines = Object.entries(status).map(
    ([type, value]) => `- type: ${type}\n  status: "${value}"\n  lastTransitionTime: ${timestamp}`,
  )
  return `conditions:\n${lines.join('\n')}\n`
}

function container(state: string, ready: boolean): string {
  return `- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: ${ready}
  restartCount: 0
  state:
    ${state}
`
}

const running = `running: { startedAt: ${timestamp} }`
const completed = `terminated: { exitCode: 0, reason: Completed, startedAt: ${timestamp}, finishedAt: ${timestamp} }`

const readyStatus = `
phase: Running
${conditions({ PodScheduled: 'True', Initialized: 'True', ContainersReady: 'True', Ready: 'True' })}
containerStatuses:
{{ range .spec.containers }}
${container(running, true)}
{{ end }}
{{ if .spec.initContainers }}
initContainerStatuses:
{{ range .spec.initContainers }}
{{ if .restartPolicy }}
${container(running, true)}
  started: true
{{ else }}
${container(completed, true)}
{{ end }}
{{ end }}
{{ end }}
${addresses}`

const gatedStatus = `
phase: Pending
${conditions({ PodScheduled: 'True', Initialized: 'False', ContainersReady: 'False', Ready: 'False' })}
containerStatuses:
{{ range .spec.containers }}
${container('waiting: { reason: PodInitializing }', false)}
{{ end }}
initContainerStatuses:
{{ range .spec.initContainers }}
{{ if eq .name "${GATE}" }}
${container(running, false)}
{{ else }}
${container(completed, true)}
{{ end }}
{{ end }}
${gateAddresses}`

interface Requirement {
  readonly key: string
  readonly operator: string
  readonly values?: readonly string[]
}

function stage(
  name: string,
  kind: 'Node' | 'Pod',
  matchExpressions: readonly Requirement[],
  rest: object,
): object {
  return {
    apiVersion: 'kwok.x-k8s.io/v1alpha1',
    kind: 'Stage',
    metadata: { name },
    spec: { resourceRef: { apiGroup: 'v1', kind }, selector: { matchExpressions }, ...rest },
  }
}

const ready = '.status.conditions.[] | select( .type == "Ready" ) | .status'

export const stages: readonly object[] = [
  stage('node-initialize', 'Node', [{ key: ready, operator: 'NotIn', values: ['True'] }], {
    next: { statusTemplate: nodeStatus },
  }),
  // KWOK renews leases itself; this is the slow heartbeat in the status.
  stage('node-heartbeat', 'Node', [{ key: ready, operator: 'In', values: ['True'] }], {
    delay: { durationMilliseconds: 300_000, jitterDurationMilliseconds: 330_000 },
    next: { statusTemplate: nodeStatus },
  }),
  stage(
    'pod-ready',
    'Pod',
    [isUndeleted, isPending, hasNoAddress, { key: initNames, operator: 'NotIn', values: [GATE] }],
    { next: { statusTemplate: readyStatus } },
  ),
  stage(
    'pod-gated',
    'Pod',
    [isUndeleted, isPending, hasNoAddress, { key: initNames, operator: 'In', values: [GATE] }],
    { next: { statusTemplate: gatedStatus } },
  ),
  stage('pod-delete', 'Pod', [{ key: '.metadata.deletionTimestamp', operator: 'Exists' }], {
    next: { delete: true },
  }),
]

export function renderStages(): string {
  // Templates must keep their line breaks, so nothing may be folded.
  return stages.map(it => stringify(it, { lineWidth: 0 })).join('---\n')
}
