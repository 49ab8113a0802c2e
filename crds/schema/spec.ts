import {
  antiAffinities,
  type BackupPodSetSpec,
  type CheckpointSpec,
  checkpointSources,
  crashLoopPolicies,
  defaults,
  diskUses,
  type FailoverSpec,
  gatePositions,
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
  strategies,
  type UpdateStrategySpec,
  updateStrategies,
} from '../../src/api/backuppodset.ts'
import { gatePort } from '../../src/api/gate.ts'
import { portName, serviceName } from '../../src/api/service-rules.ts'
import { choice, count, flag, integer, list, object, type SchemaOf, text } from './build.ts'
import { httpSource } from './http-source.ts'
import { memoryRules } from './memory-rules.ts'
import { serviceRules } from './service-rules.ts'
import { specRule } from './spec-rule.ts'
import { templateSchema } from './template.ts'

const choosing = (transition: string) =>
  choice(
    `How the pod is chosen ${transition}: random, oldest, newest, spread (by what its node carries), or annotated (by the number in its annotation backup.example.com/preference-requested, which a model outside writes: the highest is converted first, the lowest deleted first, without a number 0). Pods that are ready come first under every policy. Default random.`,
    strategies,
    defaults.strategy,
  )
/** A creation has no existing pods to choose from: the scheduler places the new pod. */
const placing = (what: string) =>
  choice(
    `How ${what} are placed: random leaves it to the scheduler, spread asks for distance from pods of the same kind. The value is also on the pod as label backup.example.com/strategy, for schedulers that want to know. Default random.`,
    placements,
    defaults.strategy,
  )

const strategy = object<StrategySpec>(
  {
    init: placing('the pods of a set that is new'),
    unallocatedToColdbackup: placing('cold backups made later'),
    unallocatedToHotbackup: placing('hot backups made later'),
    unallocatedToReplicas: placing('primaries made later, when no backup is left'),
    coldbackupToHotbackup: choosing('that turns from cold into hot backup'),
    coldbackupToReplicas: choosing('that turns from cold backup into primary when no hot backup is left'),
    hotbackupToReplicas: choosing('that turns from hot backup into primary'),
    replicasToUnallocated: choosing('that is deleted when there are too many primaries'),
    hotbackupToUnallocated: choosing('that is deleted when there are too many hot backups'),
    coldbackupToUnallocated: choosing('that is deleted when there are too many cold backups'),
  },
  {},
  {
    description:
      'How pods are chosen and placed, for each transition. A pod that is nowhere yet is unallocated; replicas are primaries. Default random for all.',
    default: {},
  },
)

export const specSchema = (): SchemaOf<BackupPodSetSpec> =>
  object<BackupPodSetSpec>(
    {
      replicas: integer(
        'Number of primaries: the pods that serve. Default 1. This is what kubectl scale and autoscalers set. A lower number deletes primaries: first what is not ready, then what has the lowest controller.kubernetes.io/pod-deletion-cost, then by strategy.replicasToUnallocated. With checkpoint their memory is kept for checkpoint.retain, and a higher number within this time brings them back with it.',
        limits.count,
        defaults.replicas,
      ),
      hotBackups: integer(
        'Number of hot backups: started, reserved and used, without traffic; one becomes primary by a change of its label. Default 0.',
        limits.count,
        defaults.hotBackups,
      ),
      coldBackups: integer(
        'Number of cold backups: scheduled, so that their resources are reserved, but held at a gate before any container starts. They stay Pending by design. Default 0.',
        limits.count,
        defaults.coldBackups,
      ),
      strategy,
      schedulerName: text('Name of the scheduler that places every created pod. Default default-scheduler.', {
        default: defaults.schedulerName,
        minLength: limits.schedulerName.min,
        maxLength: limits.schedulerName.max,
      }),
      wakeupTimeout: integer(
        'Seconds for waking one cold backup, from its choice to the answer of its gate. A gate that does not answer by then costs its pod: it is deleted, and the next cold backup is taken or a new pod made. Default 5.',
        limits.wakeupTimeout,
        defaults.wakeupTimeout,
      ),
      gatePosition: choice(
        "Where the gate of a cold backup stands among the template's init containers. First: nothing of the pod has run before it is woken. Last: the init containers have done their work already, so that it starts faster. Default First.",
        gatePositions,
        defaults.gatePosition,
      ),
      paused: flag(
        'While true, nothing is created, converted or deleted, also not after a failure; the status goes on. Default false.',
        defaults.paused,
      ),
      antiAffinity: choice(
        'How strictly backups are kept off the nodes of primaries. Preferred: where the scheduler can. Required: a pod that cannot be kept apart stays Pending. None: not at all. Default Preferred.',
        antiAffinities,
        defaults.antiAffinity,
      ),
      updateStrategy: object<UpdateStrategySpec>(
        {
          // No default in the schema, because it depends on another field.
          type: choice(
            'RollingUpdate: cold backups, then hot ones, then primaries by promotion, one ready pod at a time. OnDelete: pods keep their template until they are deleted or converted away. Default RollingUpdate; with checkpoint OnDelete. With checkpoint, primaries are rolled with their memory if the new template has the same images, commands, arguments, mounts and security contexts; otherwise nothing is rolled unless allowStateLoss says that it may be lost.',
            updateStrategies,
          ),
          allowStateLoss: flag(
            'Whether a RollingUpdate may cost memory that pods of the new template cannot be given: primaries then begin anew, one by one, each after an event StateWillBeLost. Default false.',
            defaults.allowStateLoss,
          ),
        },
        {},
        { description: 'What a change of the template does to pods that exist.', default: {} },
      ),
      failover: object<FailoverSpec>(
        {
          unreadySeconds: integer(
            'Seconds after which a primary that is not Ready counts as failed, if a ready hot backup can take its place. 0: never. Default 30.',
            limits.unreadySeconds,
            defaults.unreadySeconds,
          ),
          crashLoop: choice(
            'What happens to a primary whose container the kubelet holds in CrashLoopBackOff. Replace: it counts as failed at once, if a ready hot backup can take its place, or a gated cold one if the primary had been Ready before. Ignore: only unreadySeconds counts. Default Replace.',
            crashLoopPolicies,
            defaults.crashLoop,
          ),
          liveness: object<LivenessSpec>(
            {
              periodMilliseconds: integer(
                "Milliseconds between two probes of the template's livenessProbe by the node's agent. Default 1000.",
                limits.livenessPeriod,
                defaults.liveness.periodMilliseconds,
              ),
              failureThreshold: integer(
                'Failures in a row that count as the death of the primary. Default 3.',
                limits.failureThreshold,
                defaults.liveness.failureThreshold,
              ),
            },
            {},
            {
              description:
                "Only with checkpoint: the node's agent asks the template's livenessProbe by this clock, beside the kubelet, and a primary that fails is replaced by its understudy. Absent: the kubelet alone does, by the template.",
            },
          ),
        },
        {},
        {
          description:
            'When a primary that still exists counts as failed. One that is deleted or has ended always does.',
          default: {},
        },
      ),
      checkpoint: object<CheckpointSpec>(
        {
          source: choice(
            'Where saved states come from. criu: the memory of the processes, saved by the agent; the application knows nothing of it. http: what the application answers to a GET of checkpoint.http, given back to a successor; needs no agent, and hot backups are running applications (hotBackup.mode Warm). Of the other fields http uses only interval. Default criu.',
            checkpointSources,
            defaults.checkpoint.source,
          ),
          http: httpSource(),
          interval: text(
            'How often the memory of each primary is saved, as 500ms, 10s or 1m30s; from 200ms to 1h. It grows by itself when primaries would stand still for more than maxFreezePercent of the time. Default 10s.',
            {
              default: defaults.checkpoint.interval,
              maxLength: 32,
              pattern: '^([0-9]+([.][0-9]+)?(ms|s|m|h))+$',
            },
          ),
          maxFreezePercent: integer(
            'Percent of the time for which a primary may stand still to be saved. Default 2.',
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
                'What emptyDirs and writable layers of a pod may have together, as 512Mi; with more, nothing is saved and CheckpointReady says so. Default 1Gi.',
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
            'Nodes that keep the memory of each primary, as far as there are backups elsewhere. Default 2.',
            limits.copies,
            defaults.checkpoint.copies,
          ),
          holders: choice(
            'Matching: memory is kept only on nodes where the template may run, by its nodeSelector, required node affinity and tolerations; where there are too few of them there are fewer copies, and CheckpointReady says so. Any: on all nodes with an agent. Default Matching.',
            holderChoices,
            defaults.checkpoint.holders,
          ),
          keep: integer(
            'Saved states of each primary on each of these nodes. Default 2.',
            limits.keep,
            defaults.checkpoint.keep,
          ),
          giveUpAfterSeconds: integer(
            'Seconds after which a primary whose memory is kept, but can be brought back nowhere, begins again with none; until then its place stays empty and CheckpointReady says why. 0: never. Default 0.',
            limits.giveUpAfterSeconds,
            defaults.checkpoint.giveUpAfterSeconds,
          ),
          retain: text(
            'For how long the memory of a primary is kept that a smaller replicas deletes, as 10m or 24h: with replicas raised again in this time it comes back with its memory. 0s: not at all, it is thrown away at once. Default 10m.',
            {
              default: defaults.checkpoint.retain,
              maxLength: 32,
              pattern: '^([0-9]+([.][0-9]+)?(ms|s|m|h))+$',
            },
          ),
          disk: choice(
            "Encrypted: nodes that keep memory also write it to their disks, about once a minute, so that it outlives their restart; it can be read as long as the set exists and no longer. None: it lies in the nodes' memory alone. Default Encrypted.",
            diskUses,
            defaults.checkpoint.disk,
          ),
        },
        {},
        {
          description:
            'Asks for the memory of primaries to be kept: it is saved again and again, lies ready on other nodes, and is what a hot backup goes on with when it takes over. Needs the agent on the nodes; until some node has passed its test, hot backups wait. Absent: hot backups are ordinary pods that have run all along.',
        },
      ),
      hotBackup: object<HotBackupSpec>(
        {
          mode: choice(
            'Only with checkpoint. Frozen: the memory lies rebuilt and stopped in the hot backup, and takes over within milliseconds; where it does not fit, Staged. Staged: the memory lies as files on its node. Warm: as without checkpoint. A hot backup is called in which the memory lies quickest, unless another node has memory that is newer by more than one saved state: newer memory is then fetched first, which takes longer. Default Frozen.',
            hotBackupModes,
          ),
        },
        {},
        { description: 'What a hot backup does while it waits.' },
      ),
      service: object<ServiceSpec>(
        {
          name: text('Name of a Service in front of all primaries. Absent: none.', {
            maxLength: 63,
            pattern: serviceName,
          }),
          ports: list(
            'Ports of each Service.',
            object<ServicePortSpec>(
              {
                name: text('Needed when there are several.', { maxLength: 63, pattern: portName }),
                port: { ...count('Port of the Service.', { minimum: 1, maximum: limits.port.max }) },
                targetPort: count('Port of the pods. Default: as port.', {
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
            'One Service for each slot, <set>-<slot>, whose address stays through failovers: a client can follow one memory. Default false.',
            defaults.perSlot,
          ),
        },
        { ports: true },
        {
          description:
            'Services whose endpoints the operator writes itself, in one write at a failover. Services with a selector of your own work as well, a second slower.',
        },
      ),
      template: templateSchema(),
    },
    { template: true },
    {
      description: 'What is wished for.',
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
        ...memoryRules(),
        ...serviceRules(),
        specRule(
          'SchedulersDiffer',
          '!has(self.template.spec.schedulerName) || self.template.spec.schedulerName == self.schedulerName',
        ),
      ],
    },
  )
