/**
 * Refusals of a set: stable codes, and messages that say what to change. This is the only table: the rules of the CRD
 * use its messages, and `parseSet` uses the same ones for sets that were stored without those rules.
 */
import { limits } from './backuppodset.ts'
import { gateContainerName, gatePort } from './gate.ts'
import { labels, podKinds, prefix } from './labels.ts'
import { holdPath, holdVolume } from './pod-contract.ts'

const refuse = (field: string, message: string) => ({ field, message })

const noSuchMetadata = (field: string, why: string) =>
  refuse(`spec.template.metadata.${field}`, `remove template.metadata.${field}: ${why}`)
const noSuchField = (field: string, why: string) =>
  refuse(`spec.template.spec.${field}`, `remove template.spec.${field}: ${why}`)

/** The other cure for a template whose memory cannot be kept. */
export const orWarm = 'set hotBackup.mode to Warm or remove spec.checkpoint'

export const refusals = Object.freeze({
  NameTooLong: refuse(
    'metadata.name',
    `choose a name of at most ${limits.name} characters: names of pods add 13 to it and may have 63`,
  ),
  TemplateMissing: refuse(
    'spec.template.spec',
    'add the spec of the pod as spec.template.spec: it is missing',
  ),
  ContainersMissing: refuse(
    'spec.template.spec.containers',
    'add at least one container to template.spec.containers',
  ),
  ContainerNameInvalid: refuse(
    'spec.template.spec.containers',
    'give the container a name of at most 63 lower-case letters, digits and -, with a letter or digit at both ends',
  ),
  ContainerNameReserved: refuse(
    'spec.template.spec.containers',
    `rename the container ${gateContainerName}: the gate of cold backups uses that name`,
  ),
  ImageMissing: refuse(
    'spec.template.spec.containers',
    'set the image of the container: it is not filled in later',
  ),
  RestartPolicyNotAlways: refuse(
    'spec.template.spec.restartPolicy',
    'set template.spec.restartPolicy to Always or remove it: backups must keep running until they are needed. OnFailure is for one primary without backups, with checkpoint and one container without livenessProbe; Never for none',
  ),
  LabelTypeReserved: refuse(
    'spec.template.metadata.labels',
    `remove the label ${labels.type} from template.metadata.labels: the operator sets it to ${podKinds.join(', ')}`,
  ),
  LabelReserved: refuse(
    'spec.template.metadata.labels',
    `remove labels that begin with ${prefix} from template.metadata.labels: the operator owns that prefix`,
  ),
  AnnotationReserved: refuse(
    'spec.template.metadata.annotations',
    `remove annotations that begin with ${prefix} from template.metadata.annotations: the operator owns that prefix`,
  ),
  LabelValueInvalid: refuse(
    'spec.template.metadata.labels',
    'use label values of at most 63 letters, digits, -, _ and ., with a letter or digit at both ends',
  ),
  GenerateNameRefused: noSuchMetadata('generateName', 'pods are named <set>-<12 hex digits>'),
  NamespaceRefused: noSuchMetadata('namespace', 'pods are created in the namespace of their set'),
  FinalizersRefused: noSuchMetadata(
    'finalizers',
    'lost pods would remain forever, and failovers wait for them',
  ),
  OwnerReferencesRefused: noSuchMetadata('ownerReferences', 'the set owns its pods'),
  NodeNameRefused: noSuchField(
    'nodeName',
    'the scheduler places the pods; use nodeSelector or affinity to limit the nodes',
  ),
  EphemeralContainersRefused: noSuchField(
    'ephemeralContainers',
    'they can only be added to a running pod, by kubectl debug',
  ),
  ActiveDeadlineRefused: noSuchField(
    'activeDeadlineSeconds',
    'it would terminate primaries and backups after that time',
  ),
  OperatingSystemUnsupported: refuse(
    'spec.template.spec.os.name',
    'set template.spec.os.name to linux or remove it: there is no gate for other systems',
  ),
  GateOnHostNetwork: refuse(
    'spec.template.spec.hostNetwork',
    `set coldBackups to 0 or remove template.spec.hostNetwork: in the network of the node every gate would need the same port ${gatePort}`,
  ),
  GatePortTaken: refuse(
    'spec.template.spec.initContainers',
    `give the sidecar a port other than ${gatePort}, or set gatePosition to First: with Last it runs beside the gate, which listens on that port`,
  ),
  MemoryOnHost: refuse(
    'spec.template.spec',
    `remove hostNetwork, hostPID and hostIPC from template.spec, or ${orWarm}: memory that refers to the node cannot be moved`,
  ),
  MemoryOfSharedProcesses: refuse(
    'spec.template.spec.shareProcessNamespace',
    `remove template.spec.shareProcessNamespace, or ${orWarm}: containers are saved and restored one by one`,
  ),
  MemoryOfUserNamespace: refuse(
    'spec.template.spec.hostUsers',
    `remove hostUsers: false from template.spec, or ${orWarm}: processes in user namespaces cannot be restored`,
  ),
  MemoryOfPrivileged: refuse(
    'spec.template.spec',
    `remove privileged and capabilities such as SYS_ADMIN and SYS_PTRACE from the security contexts of containers and initContainers, or ${orWarm}: with them a container could take over the process that saves its memory, and the node`,
  ),
  MemoryOnTerminal: refuse(
    'spec.template.spec.containers',
    `remove tty from the container, or ${orWarm}: a terminal cannot be moved`,
  ),
  MemoryProbedElsewhere: refuse(
    'spec.template.spec.containers',
    `remove host from httpGet and tcpSocket of the container's probes, or ${orWarm}: agents probe understudies from the network of the node, and send probes only to the pod; put the host name of the server into httpHeaders`,
  ),
  MemoryOfDevices: refuse(
    'spec.template.spec.containers',
    `remove volumeDevices, resources.claims and limits of device plugins from the container, or ${orWarm}: the content of devices is not saved`,
  ),
  MemoryBesideClaim: refuse(
    'spec.template.spec.volumes',
    `use emptyDir or a ReadWriteMany claim instead of ephemeral volumes, or ${orWarm}: the claim of an ephemeral volume belongs to one pod, and its content is not moved`,
  ),
  MemoryBesideDisk: refuse(
    'spec.template.spec.volumes',
    `use emptyDir instead of disk volumes and inline CSI volumes, or ${orWarm}: the memory would be older than the disk, and a disk is attached to one node`,
  ),
  MemoryOfHugePages: refuse(
    'spec.template.spec',
    `remove limits of hugepages-* and emptyDir.medium HugePages from the template, or ${orWarm}: huge pages are not saved`,
  ),
  MemoryBelowExpression: refuse(
    'spec.template.spec.containers',
    `use subPath instead of subPathExpr, or ${orWarm}: the path would differ between a pod and its successor`,
  ),
  MemoryOfRestartRules: refuse(
    'spec.template.spec.containers',
    `remove restartPolicy and restartPolicyRules from the container, or ${orWarm}: the container of an understudy must keep running`,
  ),
  HoldNameReserved: refuse(
    'spec.template.spec',
    `rename the container or volume ${holdVolume}: understudies use that name`,
  ),
  HoldPathTaken: refuse(
    'spec.template.spec.containers',
    `mount the volume outside ${holdPath}, and do not mount ${holdVolume}, or ${orWarm}: understudies use that path`,
  ),
  NodeTimeoutOutOfRange: refuse(
    'spec.failover.nodeTimeout',
    'set failover.nodeTimeout to a duration from 1s to 60s',
  ),
  IntervalOutOfRange: refuse(
    'spec.checkpoint.interval',
    'set checkpoint.interval to a duration from 200ms to 1h',
  ),
  CheckpointContainerUnknown: refuse(
    'spec.checkpoint.containers',
    'list only containers of template.spec.containers in checkpoint.containers, or remove it to save all of them',
  ),
  ModeWithoutCheckpoint: refuse(
    'spec.hotBackup.mode',
    'add spec.checkpoint (checkpoint: {} is enough), or set hotBackup.mode to Warm: without it no memory is saved',
  ),
  StateLossWithoutCheckpoint: refuse(
    'spec.updateStrategy.allowStateLoss',
    'add spec.checkpoint, or remove updateStrategy.allowStateLoss: no memory is kept that could be lost',
  ),
  StateLossWithoutRoll: refuse(
    'spec.updateStrategy.type',
    'set updateStrategy.type to RollingUpdate, or remove updateStrategy.allowStateLoss: otherwise no pods are rolled, and a manual deletion never loses memory',
  ),
  LivenessWithoutCheckpoint: refuse(
    'spec.failover.liveness',
    'add spec.checkpoint, or remove failover.liveness: only agents of sets that keep memory use these settings',
  ),
  LivenessWithoutProbe: refuse(
    'spec.failover.liveness',
    'add a livenessProbe with httpGet, tcpSocket or grpc to a container of the template, or remove failover.liveness: there is nothing to probe',
  ),
  HttpSourceIncomplete: refuse(
    'spec.checkpoint.http',
    'add checkpoint.http with the port (and the path) at which the application serves its state, or remove checkpoint.source',
  ),
  HttpSourceUnused: refuse(
    'spec.checkpoint.source',
    'set checkpoint.source to http, or remove checkpoint.http: without it the memory of processes is saved, and no state is pulled over HTTP',
  ),
  HttpHeaderReserved: refuse(
    'spec.checkpoint.http',
    'use a header that does not describe the connection or the body: the operator writes those itself',
  ),
  HttpSourceWithMode: refuse(
    'spec.hotBackup.mode',
    'set hotBackup.mode to Warm or remove it, or remove checkpoint.source: a hot backup must run to receive a state over HTTP',
  ),
  HttpSourceOnHost: refuse(
    'spec.template.spec.hostNetwork',
    'remove template.spec.hostNetwork or checkpoint.source: the operator pulls only from addresses of pods, never of nodes',
  ),
  HttpSourceWithLiveness: refuse(
    'spec.failover.liveness',
    'remove failover.liveness or checkpoint.source: only agents use these settings, and source http needs no agent; the kubelet still runs the livenessProbe of the template',
  ),
  HttpSourceWithSuspend: refuse(
    'spec.suspend',
    'set suspend to false, or scale replicas to 0: a state that is pulled over HTTP cannot be kept without pods yet; checkpoint.source criu can be suspended',
  ),
  CloneWithoutCheckpoint: refuse(
    'spec.cloneFrom',
    'add spec.checkpoint with source criu and hotBackup.mode Frozen or Staged, or remove cloneFrom: a slot begins with the memory of another one only if its own is saved, too',
  ),
  ServiceForNobody: refuse(
    'spec.service',
    'set service.name for one Service for all primaries, set service.perSlot for one Service for each, or remove spec.service',
  ),
  ServicePortsAlike: refuse(
    'spec.service.ports',
    'give each of several service.ports a unique name, and a unique number or protocol',
  ),
  ServiceNameFromSet: refuse(
    'spec.service.perSlot',
    'choose a name for the set that begins with a letter and has no dots, or remove service.perSlot: its Services are named <set>-<slot>',
  ),
  ServiceNameOfSlot: refuse(
    'spec.service.name',
    'choose another service.name: the Service of a slot is named <set>-<number>',
  ),
  ReadinessGateReserved: refuse(
    'spec.template.spec.readinessGates',
    `remove gates that begin with ${prefix} from template.spec.readinessGates: agents write such conditions to pods that need them`,
  ),
  SchedulersDiffer: refuse(
    'spec.template.spec.schedulerName',
    'set spec.schedulerName and remove template.spec.schedulerName: they differ',
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
