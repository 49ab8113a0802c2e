import {
  antiAffinities,
  type BackupPodSetSpec,
  crashLoopPolicies,
  defaults,
  type FailoverSpec,
  gatePositions,
  limits,
  placements,
  type StrategySpec,
  strategies,
  type UpdateStrategySpec,
  updateStrategies,
} from '../../src/api/backuppodset.ts'
import { refusals } from '../../src/api/errors.ts'
import { gatePort } from '../../src/api/gate.ts'
import { choice, flag, integer, object, rule, type Schema, type SchemaOf, text } from './build.ts'
import { templateSchema } from './template.ts'

const choosing = (transition: string) =>
  choice(
    `How the pod is chosen ${transition}: random, oldest, newest, or spread (by what its node carries). Pods that are ready come first under every policy. Default random.`,
    strategies,
    defaults.strategy,
  )
/** Creations have no pod to choose from: they are placed by the scheduler. */
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

const ruleFor = (code: keyof typeof refusals, condition: string): Schema => {
  const { field, message } = refusals[code]
  return rule(condition, message, { fieldPath: field.replace(/^spec/, '') })
}

export const specSchema = (): SchemaOf<BackupPodSetSpec> =>
  object<BackupPodSetSpec>(
    {
      replicas: integer(
        'Number of primaries: the pods that serve. Default 1. This is what kubectl scale and autoscalers set.',
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
          type: choice(
            'RollingUpdate: cold backups, then hot ones, then primaries by promotion, one ready pod at a time. OnDelete: pods keep their template until they are deleted or converted away. Default RollingUpdate.',
            updateStrategies,
            defaults.updateStrategy,
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
        },
        {},
        {
          description:
            'When a primary that still exists counts as failed. One that is deleted or has ended always does.',
          default: {},
        },
      ),
      template: templateSchema(),
    },
    { template: true },
    {
      description: 'What is wished for.',
      'x-kubernetes-validations': [
        ruleFor(
          'GateOnHostNetwork',
          '!has(self.template.spec.hostNetwork) || !self.template.spec.hostNetwork || self.coldBackups == 0',
        ),
        ruleFor(
          'GatePortTaken',
          "self.gatePosition != 'Last' || self.coldBackups == 0 || !has(self.template.spec.initContainers) || " +
            `self.template.spec.initContainers.all(container, !has(container.ports) || container.ports.all(port, port.containerPort != ${gatePort}))`,
        ),
        ruleFor(
          'SchedulersDiffer',
          '!has(self.template.spec.schedulerName) || self.template.spec.schedulerName == self.schedulerName',
        ),
      ],
    },
  )
