import type { refusals } from './errors.ts'
import { holdPath, holdVolume, probeKinds } from './pod-contract.ts'
import { type Anything, isSet, objectIn, objectsIn, textsIn } from './unknown.ts'

type Rules = readonly (readonly [keyof typeof refusals, boolean])[]

/** Input of the rules about memory, of any shape. */
export interface MemoryRuled {
  readonly checkpoint: unknown
  readonly hotBackup: unknown
  readonly liveness: unknown
  readonly allowStateLoss: unknown
  readonly updateType: unknown
  readonly suspend: unknown
  readonly cloneFrom: unknown
  /** Whether the primaries' memory is kept. */
  readonly keepsMemory: boolean
  /** Whether the app's state is pulled over HTTP. */
  readonly pullsState: boolean
}

/** The CRD has the same rules as CEL, see src/api/schema/memory-rules.ts. */
export function memoryRules(pod: Anything, spec: MemoryRuled): Rules {
  const {
    checkpoint,
    hotBackup,
    liveness,
    allowStateLoss,
    updateType,
    suspend,
    cloneFrom,
    keepsMemory,
    pullsState,
  } = spec
  const containers = objectsIn(pod['containers'])
  return [
    [
      'CheckpointContainerUnknown',
      textsIn(objectIn(checkpoint)['containers']).some(name => !containers.some(it => it['name'] === name)),
    ],
    ['ModeWithoutCheckpoint', !isSet(checkpoint) && (objectIn(hotBackup)['mode'] ?? 'Warm') !== 'Warm'],
    ['StateLossWithoutCheckpoint', allowStateLoss === true && !isSet(checkpoint)],
    ['StateLossWithoutRoll', allowStateLoss === true && updateType !== 'RollingUpdate'],
    ['HttpSourceIncomplete', pullsState && !isSet(objectIn(checkpoint)['http'])],
    ['HttpSourceUnused', !pullsState && isSet(objectIn(checkpoint)['http'])],
    ['HttpSourceWithMode', pullsState && (objectIn(hotBackup)['mode'] ?? 'Warm') !== 'Warm'],
    ['HttpSourceOnHost', pullsState && pod['hostNetwork'] === true],
    ['HttpSourceWithLiveness', pullsState && isSet(liveness)],
    ['HttpSourceWithSuspend', pullsState && suspend === true],
    ['CloneWithoutCheckpoint', isSet(cloneFrom) && !keepsMemory],
    ['LivenessWithoutCheckpoint', isSet(liveness) && !isSet(checkpoint)],
    [
      'LivenessWithoutProbe',
      isSet(liveness) &&
        containers.every(
          ({ livenessProbe }) => !isSet(livenessProbe) || isSet(objectIn(livenessProbe)['exec']),
        ),
    ],
    ...(keepsMemory ? templateRules(pod, containers) : []),
  ]
}

/** Features that cannot be saved, or not be restored in another pod. */
function templateRules(pod: Anything, containers: readonly Anything[]): Rules {
  const volumes = objectsIn(pod['volumes'])
  const initContainers = objectsIn(pod['initContainers'])
  const all = [...containers, ...initContainers]
  return [
    ['MemoryOnHost', pod['hostNetwork'] === true || pod['hostPID'] === true || pod['hostIPC'] === true],
    ['MemoryOfSharedProcesses', pod['shareProcessNamespace'] === true],
    ['MemoryOfUserNamespace', pod['hostUsers'] === false],
    ['MemoryOfPrivileged', all.some(isPrivileged)],
    ['MemoryOnTerminal', containers.some(it => it['tty'] === true)],
    ['MemoryProbedElsewhere', containers.some(isProbedElsewhere)],
    ['MemoryOfDevices', containers.some(hasDevices)],
    ['MemoryBesideClaim', volumes.some(it => isSet(it['ephemeral']))],
    ['MemoryBesideDisk', volumes.some(it => diskVolumes.some(kind => isSet(it[kind])))],
    [
      'MemoryOfHugePages',
      containers.some(it => limitsOf(it).some(name => name.startsWith(hugePages))) ||
        volumes.some(it => String(objectIn(it['emptyDir'])['medium'] ?? '').startsWith('HugePages')),
    ],
    [
      'MemoryBelowExpression',
      containers.some(it => objectsIn(it['volumeMounts']).some(({ subPathExpr }) => isSet(subPathExpr))),
    ],
    [
      'MemoryOfRestartRules',
      containers.some(it => isSet(it['restartPolicy']) || isSet(it['restartPolicyRules'])),
    ],
    ['HoldNameReserved', [...all, ...volumes].some(it => it['name'] === holdVolume)],
    [
      'HoldPathTaken',
      all.some(it =>
        objectsIn(it['volumeMounts']).some(
          ({ name, mountPath }) => name === holdVolume || `${mountPath}/`.startsWith(`${holdPath}/`),
        ),
      ),
    ],
  ]
}

/**
 * With one of these a process can access the memory of other visible processes or of the kernel, or any user's files.
 * So it could attack the program that saves and restores memory in the container and has root rights on the node.
 */
export const dangerousCapabilities = [
  ...(['BPF', 'CHECKPOINT_RESTORE', 'DAC_READ_SEARCH', 'MAC_ADMIN', 'MAC_OVERRIDE', 'PERFMON'] as const),
  ...(['SYS_ADMIN', 'SYS_MODULE', 'SYS_PTRACE', 'SYS_RAWIO'] as const),
] as const

/** Runtimes accept any case, an optional prefix, and a word for all of them. */
export const dangerousPattern = `(?i)^(CAP_)?(ALL|${dangerousCapabilities.join('|')})$`
const dangerous = new RegExp(dangerousPattern.replace('(?i)', ''), 'i')

function isPrivileged({ securityContext }: Anything): boolean {
  const { privileged, capabilities } = objectIn(securityContext)
  return privileged === true || textsIn(objectIn(capabilities)['add']).some(name => dangerous.test(name))
}

/** Volumes that only one node can attach at a time, and CSI volumes that start empty in each pod. */
export const diskVolumes = [
  ...['awsElasticBlockStore', 'azureDisk', 'cinder', 'csi', 'fc', 'flexVolume', 'gcePersistentDisk', 'iscsi'],
  ...['photonPersistentDisk', 'portworxVolume', 'rbd', 'scaleIO', 'storageos', 'vsphereVolume'],
] as const

/** Prefix of the resources of huge pages, before their size. */
export const hugePages = 'hugepages-'

const limitsOf = (container: Anything) => Object.keys(objectIn(objectIn(container['resources'])['limits']))

const isProbedElsewhere = (container: Anything): boolean =>
  probeKinds.some(kind => {
    const { httpGet, tcpSocket } = objectIn(container[kind])
    return [httpGet, tcpSocket].some(handler => isSet(objectIn(handler)['host']))
  })

/** Resources with a slash in their names are those of device plugins, such as GPUs. */
function hasDevices(container: Anything): boolean {
  const { claims } = objectIn(container['resources'])
  return (
    objectsIn(container['volumeDevices']).length > 0 ||
    objectsIn(claims).length > 0 ||
    limitsOf(container).some(name => name.includes('/'))
  )
}
