// Long because it is a list: every field of the spec with its text.
import {
  antiAffinities,
  type BackupPodSetSpec,
  type CheckpointSpec,
  type CloneFrom,
  checkpointSources,
  crashLoopPolicies,
  defaults,
  diskUses,
  drainModes,
  type FailoverSpec,
  fencings,
  gatePositions,
  grantees,
  type HotBackupSpec,
  holderChoices,
  hotBackupModes,
  type LivenessSpec,
  limits,
  placements,
  protocols,
  type ServicePortSpec,
  type ServiceSpec,
  type StrategySpec,
  serviceTypes,
  strategies,
  type UpdateStrategySpec,
  updateStrategies,
} from '../backuppodset.ts'
import { gatePort } from '../gate.ts'
import { portName, serviceName } from '../service-rules.ts'
import { choice, count, durationPattern, flag, integer, list, object, type SchemaOf, text } from './build.ts'
import { httpSource } from './http-source.ts'
import { keepsMemory, memoryRules, restartPolicyRule } from './memory-rules.ts'
import { serviceRules } from './service-rules.ts'
import { specRule } from './spec-rule.ts'
import { templateSchema } from './template.ts'

const choosing = (transition: string) =>
  choice(
    `How the pod is chosen ${transition}: random, oldest, newest, spread (by the number of pods on its node), or annotated (by the number in its annotation backup.example.com/preference-requested, written by an external model: the highest is converted first, the lowest deleted first; no number counts as 0). With every policy, pods that are not ready are converted last and deleted first. Default random.`,
    strategies,
    defaults.strategy,
  )
/** A creation has no existing pods to choose from: the scheduler places the new pod. */
const placing = (what: string) =>
  choice(
    `How ${what} are placed: random leaves it to the scheduler, spread asks for distance from pods of the same kind. The pod also has the value as label backup.example.com/strategy, for custom schedulers. Default random.`,
    placements,
    defaults.strategy,
  )

const strategy = object<StrategySpec>(
  {
    init: placing('the pods of a new set'),
    unallocatedToColdbackup: placing('cold backups created later'),
    unallocatedToHotbackup: placing('hot backups created later'),
    unallocatedToReplicas: placing('primaries created later, when no backup is left'),
    coldbackupToHotbackup: choosing('that changes from cold to hot backup'),
    coldbackupToReplicas: choosing('that changes from cold backup to primary when no hot backup is left'),
    hotbackupToReplicas: choosing('that changes from hot backup to primary'),
    replicasToUnallocated: choosing('that is deleted when there are too many primaries'),
    hotbackupToUnallocated: choosing('that is deleted when there are too many hot backups'),
    coldbackupToUnallocated: choosing('that is deleted when there are too many cold backups'),
  },
  {},
  {
    description:
      'How pods are chosen and placed, for each transition. Unallocated means that a pod is created or deleted; replicas are primaries. Default random for all.',
    default: {},
  },
)

const suspendText =
  'True: the operator ends all pods. With checkpoint, each primary is stopped and saved up to its last instruction first, and keeps running while that is not possible: the condition Suspended says why. The memory is kept on nodes, without a time limit, until this is false again: then the primaries resume with it, on any nodes that can take it. Default false.'

export const specSchema = (): SchemaOf<BackupPodSetSpec> =>
  object<BackupPodSetSpec>(
    {
      replicas: integer(
        'Number of primaries: the pods that serve. Default 1. This is what kubectl scale and autoscalers set. A lower number deletes primaries: first those that are not ready, then those with the lowest controller.kubernetes.io/pod-deletion-cost, then by strategy.replicasToUnallocated. With checkpoint their memory is kept for checkpoint.retain, and a higher number within that time restores them with it.',
        limits.count,
        defaults.replicas,
      ),
      hotBackups: integer(
        'Number of hot backups: started pods that occupy their resources and get no traffic. A change of its label makes a hot backup a primary. Default 0.',
        limits.count,
        defaults.hotBackups,
      ),
      coldBackups: integer(
        'Number of cold backups: scheduled pods, so that their resources are reserved, that wait at a gate before any container starts. They stay Pending by design. Default 0.',
        limits.count,
        defaults.coldBackups,
      ),
      strategy,
      schedulerName: text('Name of the scheduler for all pods of the set. Default default-scheduler.', {
        default: defaults.schedulerName,
        minLength: limits.schedulerName.min,
        maxLength: limits.schedulerName.max,
      }),
      wakeupTimeout: integer(
        'Timeout for waking one cold backup in seconds, from its choice to the answer of its gate. If the gate does not answer in time, the operator deletes its pod and takes the next cold backup or creates a new pod. Default 5.',
        limits.wakeupTimeout,
        defaults.wakeupTimeout,
      ),
      gatePosition: choice(
        "Position of a cold backup's gate among the init containers of the template. First: nothing of the pod runs before it is woken. Last: the init containers run before the gate, so that a woken pod starts faster. Default First.",
        gatePositions,
        defaults.gatePosition,
      ),
      paused: flag(
        'While true, the operator creates, converts and deletes no pods, not even after a failure; it still updates the status. Default false.',
        defaults.paused,
      ),
      suspend: flag(suspendText, defaults.suspend),
      cloneFrom: object<CloneFrom>(
        {
          pod: text('Name of the pod.', { minLength: 1, maxLength: limits.podName.max }),
        },
        { pod: true },
        {
          description:
            'Each new slot of this set begins with a copy of the memory of this pod, as it was saved last. The pod is in the same namespace: a primary of a BackupPodSet with checkpoint, or the pod of a MigratingPod. It keeps running. A new slot waits while the pod does not exist, or while its memory does not fit the template; the condition Cloned says why.',
        },
      ),
      antiAffinity: choice(
        'How strictly backups are kept off the nodes of primaries. Preferred: if the scheduler can. Required: a pod that cannot be kept apart stays Pending. None: not at all. Default Preferred.',
        antiAffinities,
        defaults.antiAffinity,
      ),
      updateStrategy: object<UpdateStrategySpec>(
        {
          // No default in the schema, because it depends on another field.
          type: choice(
            'RollingUpdate: replaces cold backups, then hot backups, then primaries by promotion, one ready pod at a time. OnDelete: pods keep their template until they are deleted or converted. Default RollingUpdate; with checkpoint OnDelete. With checkpoint, primaries are rolled with their memory if the new template has the same images, commands, arguments, mounts and security contexts; otherwise nothing is rolled unless allowStateLoss permits the loss.',
            updateStrategies,
          ),
          allowStateLoss: flag(
            'True if a RollingUpdate may lose memory that cannot be restored in pods of the new template: primaries then start with empty memory, one by one, each after an event StateWillBeLost. Default false.',
            defaults.allowStateLoss,
          ),
        },
        {},
        { description: 'What a change of the template does to existing pods.', default: {} },
      ),
      failover: object<FailoverSpec>(
        {
          unreadySeconds: integer(
            'Seconds after which a primary that is not Ready counts as failed, if a ready hot backup can take its place. 0: never. Default 30.',
            limits.unreadySeconds,
            defaults.unreadySeconds,
          ),
          crashLoop: choice(
            'What happens to a primary with a container in CrashLoopBackOff. Replace: it counts as failed at once, if a ready hot backup can take its place, or a gated cold backup if the primary was Ready before. Ignore: only unreadySeconds counts. Default Replace.',
            crashLoopPolicies,
            defaults.crashLoop,
          ),
          nodeTimeout: text(
            'Only with checkpoint: how long the node of a primary may be silent, for example 3s; from 1s to 60s. The nodes with copies of its memory and the API server decide by it whether another pod takes over. Default 3s.',
            {
              default: defaults.nodeTimeout,
              maxLength: 32,
              pattern: durationPattern,
            },
          ),
          fencing: choice(
            'Only with checkpoint. Freeze: a primary that neither the nodes with its copies nor the API server can hear stops by itself, before another pod takes over; it resumes if it is heard again in time. None: it runs on, and another pod takes over when Kubernetes reports the loss of the node. Default Freeze.',
            fencings,
            defaults.fencing,
          ),
          grant: choice(
            'Only with checkpoint. Heir: the hot backup that has the memory of a primary may take its slot without the operator, once the node of the primary says that it has died; so a primary gets its successor also while the API server is away. Announced: the same, but the heir tells the API server before it resumes; while that is away, it waits. None: the operator calls each successor. Default None.',
            grantees,
            defaults.grant,
          ),
          liveness: object<LivenessSpec>(
            {
              periodMilliseconds: integer(
                "Milliseconds between two probes of the template's livenessProbe by the node's agent. Default 1000.",
                limits.livenessPeriod,
                defaults.liveness.periodMilliseconds,
              ),
              failureThreshold: integer(
                'Consecutive failures after which the primary counts as dead. Default 3.',
                limits.failureThreshold,
                defaults.liveness.failureThreshold,
              ),
            },
            {},
            {
              description:
                "Only with checkpoint: the node's agent runs the template's livenessProbe with these settings, beside the kubelet, and a primary that fails is replaced by its understudy. Absent: only the kubelet probes, as the template says.",
            },
          ),
        },
        {},
        {
          description:
            'When a primary that still exists counts as failed. A primary that is deleted or has ended always does.',
          default: {},
        },
      ),
      checkpoint: object<CheckpointSpec>(
        {
          source: choice(
            'Where saved states come from. criu: the agent saves the memory of the processes; the application does not take part. http: the operator gets the state from the application as checkpoint.http says, and sends it to a successor; needs no agent, and hot backups are running applications (hotBackup.mode Warm). Of the other fields http uses only interval. Default criu.',
            checkpointSources,
            defaults.checkpoint.source,
          ),
          http: httpSource(),
          interval: text(
            'Time between two checkpoints of a primary, for example 500ms, 10s or 1m30s; from 200ms to 1h. The agent lengthens it if primaries would be stopped for more than maxFreezePercent of the time. Default 10s.',
            {
              default: defaults.checkpoint.interval,
              maxLength: 32,
              pattern: durationPattern,
            },
          ),
          maxFreezePercent: integer(
            'Percent of the time for which a primary may be stopped for checkpoints. Default 2.',
            limits.maxFreezePercent,
            defaults.checkpoint.maxFreezePercent,
          ),
          containers: list(
            'Names of the containers whose memory is saved; the others run in hot backups from the start. Absent: all.',
            { type: 'string', maxLength: 63 } as SchemaOf<string>,
            64,
            { minItems: 1, 'x-kubernetes-list-type': 'set' },
          ),
          volumes: object<NonNullable<CheckpointSpec['volumes']>>(
            {
              maxSize: text(
                'Maximum total size of the emptyDirs and writable layers of a pod, for example 512Mi. Above it, nothing is saved and CheckpointReady says so. Default 1Gi.',
                {
                  default: defaults.checkpoint.volumes.maxSize,
                  maxLength: 32,
                  pattern: '^[0-9]+([.][0-9]+)?([kMGT]|[KMGT]i)?$',
                },
              ),
            },
            {},
            { description: 'Files that are saved together with the memory.', default: {} },
          ),
          copies: integer(
            'Number of nodes, besides that of the primary, that keep the memory of each primary. Nodes with backups come first; nodes without backups keep it, too, if there are too few. Default 2.',
            limits.copies,
            defaults.checkpoint.copies,
          ),
          holders: choice(
            'Matching: only nodes where the template may run, by its nodeSelector, required node affinity and tolerations, keep memory; with too few such nodes there are fewer copies, and CheckpointReady says so. Any: all nodes with an agent may. Default Matching.',
            holderChoices,
            defaults.checkpoint.holders,
          ),
          keep: integer(
            'Number of saved states of each primary on each of these nodes. Default 2.',
            limits.keep,
            defaults.checkpoint.keep,
          ),
          giveUpAfterSeconds: integer(
            'Seconds after which the operator starts a primary with empty memory, if its memory is kept but no node can restore it. Until then its slot stays empty and CheckpointReady says why. 0: never. Default 0.',
            limits.giveUpAfterSeconds,
            defaults.checkpoint.giveUpAfterSeconds,
          ),
          retain: text(
            'How long the memory of a primary is kept after a smaller replicas has deleted it, for example 10m or 24h. If replicas is raised again in that time, the primary is restored with its memory. 0s: the memory is discarded at once. Default 10m.',
            {
              default: defaults.checkpoint.retain,
              maxLength: 32,
              pattern: durationPattern,
            },
          ),
          disk: choice(
            'Encrypted: nodes that keep memory also write it to their disks, about once a minute, so that it survives a reboot; it can be decrypted only while the set exists. None: it is kept only in the memory of the nodes. Default Encrypted.',
            diskUses,
            defaults.checkpoint.disk,
          ),
          drain: choice(
            'Move: primaries leave a node that is cordoned or drained with their memory, by Migrations that the operator makes, and a PodDisruptionBudget of the operator refuses their eviction until then. Evict: neither; an evicted primary is replaced like one that was deleted, and its successor continues from the last saved state. Default Move.',
            drainModes,
            defaults.checkpoint.drain,
          ),
        },
        {},
        {
          description:
            'Keeps the memory of primaries: it is saved at an interval, copied to other nodes, and restored in the hot backup that takes over. Needs the agent on the nodes; until a node has passed its checks, hot backups stay Pending. Absent: hot backups are ordinary running pods with a memory of their own.',
        },
      ),
      hotBackup: object<HotBackupSpec>(
        {
          mode: choice(
            'Only with checkpoint. Frozen: the memory is restored in the hot backup and stopped there, and takes over within milliseconds; if it does not fit, Staged. Staged: the node of the hot backup keeps the memory as files. Warm: as without checkpoint. The hot backup that can resume fastest takes over, unless another node has memory that is newer by more than one saved state: that memory is fetched first, which takes longer. Default Frozen.',
            hotBackupModes,
          ),
        },
        {},
        { description: 'The state of a hot backup while it waits.' },
      ),
      service: object<ServiceSpec>(
        {
          name: text('Name of a Service for all primaries. Absent: there is none.', {
            maxLength: 63,
            pattern: serviceName,
          }),
          ports: list(
            'Ports of each Service.',
            object<ServicePortSpec>(
              {
                name: text('Name of the port. Required if there are several.', {
                  maxLength: 63,
                  pattern: portName,
                }),
                port: { ...count('Port of the Service.', { minimum: 1, maximum: limits.port.max }) },
                targetPort: count('Port of the pods. Default: the value of port.', {
                  minimum: 1,
                  maximum: limits.port.max,
                }),
                protocol: choice('TCP or UDP. Default TCP.', protocols),
              },
              { port: true },
            ),
            32,
            { minItems: 1, 'x-kubernetes-list-type': 'atomic' },
          ),
          perSlot: flag(
            'True for one Service per slot, <set>-<slot>. Its address survives failovers, so that a client can follow one memory. Default false.',
            defaults.perSlot,
          ),
          type: choice(
            'Type of each Service. NodePort and LoadBalancer make the slots reachable from outside of the cluster; the port and the address stay through failovers. Default ClusterIP.',
            serviceTypes,
          ),
        },
        { ports: true },
        {
          description:
            'Services whose endpoints the operator itself writes, in one write at a failover. Your own Services with a selector also work, about a second slower.',
        },
      ),
      template: templateSchema(),
    },
    { template: true },
    {
      description: 'Desired state.',
      'x-kubernetes-validations': [
        specRule(
          'GateOnHostNetwork',
          '!has(self.template.spec.hostNetwork) || !self.template.spec.hostNetwork || self.coldBackups == 0',
        ),
        specRule(
          'GatePortTaken',
          "self.gatePosition != 'Last' || self.coldBackups == 0 || !has(self.template.spec.initContainers) || " +
            `self.template.spec.initContainers.all(container, !has(container.ports) || container.ports.all(port, port.containerPort != ${gatePort}))`,
        ),
        restartPolicyRule(
          `${keepsMemory} && self.replicas == 1 && self.hotBackups == 0 && self.coldBackups == 0`,
        ),
        ...memoryRules(),
        ...serviceRules(),
        specRule(
          'SchedulersDiffer',
          '!has(self.template.spec.schedulerName) || self.template.spec.schedulerName == self.schedulerName',
        ),
      ],
    },
  )
