/**
 * Refusals of a set: stable codes, and messages that say what to change. This is the only table: the rules of the CRD
 * use its messages, and `parseSet` uses the same ones for sets that were stored without those rules.
 */
import { limits } from './backuppodset.ts'
import { gateContainerName, gatePort } from './gate.ts'
import { labels, podKinds, prefix } from './labels.ts'
import { holdPath, holdVolume } from './stage.ts'

const refuse = (field: string, message: string) => ({ field, message })

const noSuchMetadata = (field: string, why: string) =>
  refuse(`spec.template.metadata.${field}`, `remove template.metadata.${field}: ${why}`)
const noSuchField = (field: string, why: string) =>
  refuse(`spec.template.spec.${field}`, `remove template.spec.${field}: ${why}`)

const orWarm = 'set hotBackup.mode to Warm or remove spec.checkpoint'

export const refusals = Object.freeze({
  NameTooLong: refuse(
    'metadata.name',
    `choose a name of at most ${limits.name} characters: pod names append 13 to it and may have 63`,
  ),
  TemplateMissing: refuse('spec.template.spec', 'describe the pod in spec.template.spec: there is none'),
  ContainersMissing: refuse(
    'spec.template.spec.containers',
    'name at least one container in template.spec.containers',
  ),
  ContainerNameInvalid: refuse(
    'spec.template.spec.containers',
    'name the container with at most 63 lower-case letters, digits and -, a letter or digit at both ends',
  ),
  ContainerNameReserved: refuse(
    'spec.template.spec.containers',
    `rename the container ${gateContainerName}: the gate of cold backups has that name`,
  ),
  ImageMissing: refuse(
    'spec.template.spec.containers',
    'name the image of the container: nobody fills it in later',
  ),
  RestartPolicyNotAlways: refuse(
    'spec.template.spec.restartPolicy',
    'set template.spec.restartPolicy to Always or leave it out: backups have to stay up until they are needed',
  ),
  LabelTypeReserved: refuse(
    'spec.template.metadata.labels',
    `remove the label ${labels.type} from template.metadata.labels: the operator writes ${podKinds.join(', ')} there`,
  ),
  LabelReserved: refuse(
    'spec.template.metadata.labels',
    `remove what begins with ${prefix} from template.metadata.labels: that prefix belongs to the operator`,
  ),
  AnnotationReserved: refuse(
    'spec.template.metadata.annotations',
    `remove what begins with ${prefix} from template.metadata.annotations: that prefix belongs to the operator`,
  ),
  LabelValueInvalid: refuse(
    'spec.template.metadata.labels',
    'write values of labels with at most 63 letters, digits, -, _ and ., a letter or digit at both ends',
  ),
  GenerateNameRefused: noSuchMetadata('generateName', 'pods are named <set>-<12 hex digits>'),
  NamespaceRefused: noSuchMetadata('namespace', 'pods are made in the namespace of their set'),
  FinalizersRefused: noSuchMetadata(
    'finalizers',
    'lost pods would stay for ever and failovers wait for them',
  ),
  OwnerReferencesRefused: noSuchMetadata('ownerReferences', 'the set owns its pods'),
  NodeNameRefused: noSuchField(
    'nodeName',
    'the scheduler places the pods; use nodeSelector or affinity to limit the nodes',
  ),
  EphemeralContainersRefused: noSuchField(
    'ephemeralContainers',
    'they can only be added to a running pod, with kubectl debug',
  ),
  ActiveDeadlineRefused: noSuchField(
    'activeDeadlineSeconds',
    'it would end primaries and backups after that time',
  ),
  OperatingSystemUnsupported: refuse(
    'spec.template.spec.os.name',
    'set template.spec.os.name to linux or leave it out: there is no gate for other systems',
  ),
  GateOnHostNetwork: refuse(
    'spec.template.spec.hostNetwork',
    `set coldBackups to 0 or remove template.spec.hostNetwork: on the network of the node every gate would want the same port ${gatePort}`,
  ),
  GatePortTaken: refuse(
    'spec.template.spec.initContainers',
    `give the sidecar another port than ${gatePort}, or set gatePosition to First: with Last it runs beside the gate, which listens there`,
  ),
  MemoryOnHost: refuse(
    'spec.template.spec',
    `remove hostNetwork, hostPID and hostIPC from template.spec, or ${orWarm}: memory that points into the node cannot be moved`,
  ),
  MemoryOfSharedProcesses: refuse(
    'spec.template.spec.shareProcessNamespace',
    `remove template.spec.shareProcessNamespace, or ${orWarm}: containers are saved and rebuilt one by one`,
  ),
  MemoryOfUserNamespace: refuse(
    'spec.template.spec.hostUsers',
    `remove hostUsers: false from template.spec, or ${orWarm}: processes in user namespaces cannot be rebuilt`,
  ),
  MemoryOfPrivileged: refuse(
    'spec.template.spec',
    `remove privileged and capabilities such as SYS_ADMIN and SYS_PTRACE from the security contexts of containers and initContainers, or ${orWarm}: with them a container could take over what saves its memory, and the node`,
  ),
  MemoryOnTerminal: refuse(
    'spec.template.spec.containers',
    `remove tty from the container, or ${orWarm}: a terminal cannot be moved`,
  ),
  MemoryProbedElsewhere: refuse(
    'spec.template.spec.containers',
    `remove host from httpGet and tcpSocket of the container's probes, or ${orWarm}: it is agents that probe understudies, from the network of the node, and they ask nobody but the pod; a name for the server belongs into httpHeaders`,
  ),
  MemoryOfDevices: refuse(
    'spec.template.spec.containers',
    `remove volumeDevices, resources.claims and limits of device plugins from the container, or ${orWarm}: what is in a device is not saved`,
  ),
  MemoryBesideClaim: refuse(
    'spec.template.spec.volumes',
    `use emptyDir, or a claim that is ReadWriteMany, in place of ephemeral volumes, or ${orWarm}: the claim of an ephemeral volume has one pod, and its content is not carried`,
  ),
  MemoryBesideDisk: refuse(
    'spec.template.spec.volumes',
    `use emptyDir in place of volumes on disks and of inline CSI volumes, or ${orWarm}: the memory would be older than the disk, and a disk has one node`,
  ),
  MemoryOfHugePages: refuse(
    'spec.template.spec',
    `remove limits of hugepages-* and emptyDir.medium HugePages from the template, or ${orWarm}: huge pages are not saved`,
  ),
  MemoryBelowExpression: refuse(
    'spec.template.spec.containers',
    `use subPath in place of subPathExpr, or ${orWarm}: the path would differ between a pod and its successor`,
  ),
  MemoryOfRestartRules: refuse(
    'spec.template.spec.containers',
    `remove restartPolicy and restartPolicyRules from the container, or ${orWarm}: an understudy's container has to stay up`,
  ),
  HoldNameReserved: refuse(
    'spec.template.spec',
    `rename the container or volume ${holdVolume}: understudies have one of that name`,
  ),
  HoldPathTaken: refuse(
    'spec.template.spec.containers',
    `mount the volume elsewhere than at ${holdPath} or below it, and not ${holdVolume} itself, or ${orWarm}: understudies have theirs there`,
  ),
  IntervalOutOfRange: refuse(
    'spec.checkpoint.interval',
    'set checkpoint.interval to a duration from 200ms to 1h',
  ),
  CheckpointContainerUnknown: refuse(
    'spec.checkpoint.containers',
    'name containers of template.spec.containers in checkpoint.containers, or leave it out for all of them',
  ),
  ModeWithoutCheckpoint: refuse(
    'spec.hotBackup.mode',
    'add spec.checkpoint (checkpoint: {} is enough), or set hotBackup.mode to Warm: nothing is saved without it',
  ),
  StateLossWithoutCheckpoint: refuse(
    'spec.updateStrategy.allowStateLoss',
    'add spec.checkpoint, or remove updateStrategy.allowStateLoss: nothing is kept that could be lost',
  ),
  StateLossWithoutRoll: refuse(
    'spec.updateStrategy.type',
    'set updateStrategy.type to RollingUpdate, or remove updateStrategy.allowStateLoss: nothing is rolled otherwise, and what is deleted by hand never costs memory',
  ),
  LivenessWithoutCheckpoint: refuse(
    'spec.failover.liveness',
    'add spec.checkpoint, or remove failover.liveness: it is the agents of sets that keep memory who ask by this clock',
  ),
  LivenessWithoutProbe: refuse(
    'spec.failover.liveness',
    'add a livenessProbe with httpGet, tcpSocket or grpc to a container of the template, or remove failover.liveness: there is nothing to ask',
  ),
  HttpSourceIncomplete: refuse(
    'spec.checkpoint.http',
    'add checkpoint.http with the port (and the path) at which the application gives its state, or remove checkpoint.source',
  ),
  HttpSourceUnused: refuse(
    'spec.checkpoint.source',
    'set checkpoint.source to http, or remove checkpoint.http: without it the memory of processes is saved and nothing is asked over HTTP',
  ),
  HttpHeaderReserved: refuse(
    'spec.checkpoint.http',
    'name a header that is not of the connection or the body: the operator writes those itself',
  ),
  HttpSourceWithMode: refuse(
    'spec.hotBackup.mode',
    'set hotBackup.mode to Warm or leave it out, or remove checkpoint.source: a hot backup has to run to be given a state over HTTP',
  ),
  HttpSourceOnHost: refuse(
    'spec.template.spec.hostNetwork',
    'remove template.spec.hostNetwork, or checkpoint.source: the operator asks pods at addresses of their own, never nodes',
  ),
  HttpSourceWithLiveness: refuse(
    'spec.failover.liveness',
    'remove failover.liveness, or checkpoint.source: it is agents who ask by this clock, and over HTTP no agent is needed; the livenessProbe of the template is asked by the kubelet',
  ),
  ServiceForNobody: refuse(
    'spec.service',
    'set service.name for a Service in front of all primaries, service.perSlot for one in front of each, or remove spec.service',
  ),
  ServicePortsAlike: refuse(
    'spec.service.ports',
    'give each of several service.ports a name of its own, and a number or protocol of its own',
  ),
  ServiceNameFromSet: refuse(
    'spec.service.perSlot',
    'choose a name for the set that begins with a letter and has no dots, or remove service.perSlot: its Services are named <set>-<slot>',
  ),
  ServiceNameOfSlot: refuse(
    'spec.service.name',
    'choose another service.name: <set>-<number> is that of a slot',
  ),
  ReadinessGateReserved: refuse(
    'spec.template.spec.readinessGates',
    `remove what begins with ${prefix} from template.spec.readinessGates: agents write such conditions in pods that need them`,
  ),
  SchedulersDiffer: refuse(
    'spec.template.spec.schedulerName',
    'name the scheduler in spec.schedulerName and remove template.spec.schedulerName: they differ',
  ),
})

/** `InvalidValue` covers types, bounds and lists of values; its message is derived from those. */
export type RefusalCode = keyof typeof refusals | 'InvalidValue'

export interface Refusal {
  readonly code: RefusalCode
  readonly field: string
  readonly message: string
}

/** Returns the refusal of an invalid value; `expected` follows "set it to". */
export const invalidValue = (field: string, value: unknown, expected: string): Refusal => ({
  code: 'InvalidValue',
  field,
  message: `${field} is ${JSON.stringify(value)}: set it to ${expected}`,
})

export const refusalOf = (code: keyof typeof refusals): Refusal => ({ code, ...refusals[code] })
