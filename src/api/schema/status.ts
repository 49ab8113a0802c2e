import type { Condition } from '../../kube/conditions.ts'
import {
  type BackupPodSetStatus,
  type Completion,
  type LastTransition,
  limits,
  type Summary,
} from '../backuppodset.ts'
import { podKinds } from '../labels.ts'
import {
  type LastFailover,
  origins,
  protections,
  type RetainedSlot,
  type SlotFailover,
  type SlotStatus,
} from '../slot-status.ts'
import { choice, count, flag, list, mapList, object, type SchemaOf, seconds, text, time } from './build.ts'

const int64 = { format: 'int64' }

const names = (of: string) =>
  list(
    `Names of the ${of}, in order; at most ${limits.listed}, the counters count all.`,
    { type: 'string' } as SchemaOf<string>,
    limits.listed,
  )

const slot = object<SlotStatus>(
  {
    slot: count('Number of the slot.'),
    pod: text('Name of its primary.'),
    node: text('Node of its primary.'),
    epoch: count('Increases with each promotion in the slot.', int64),
    ready: flag('True if its primary is Ready.'),
    generation: count(
      'With checkpoint: number of the newest saved state that a node keeps for a successor; 0: none yet.',
    ),
    savedAt: time(
      'With checkpoint: time of the memory that a successor would resume with, RFC 3339. Updated at most once a minute: nodes may keep newer memory.',
    ),
    intervalSeconds: seconds(
      'With checkpoint: time between two checkpoints, adapted to maxFreezePercent. The memory of a successor is at most this old plus pipelineSeconds.',
    ),
    intervalReason: text(
      'With checkpoint: why intervalSeconds is longer than spec.checkpoint.interval: FreezeBudget, Busy or HoldersBehind; absent: it is not.',
    ),
    pipelineSeconds: seconds(
      'With checkpoint: time from the stop of the primary until its newest saved state was complete on another node.',
    ),
    usableOn: list(
      `With checkpoint: nodes on which a successor could resume with it; at most ${limits.usableOn}.`,
      { type: 'string' } as SchemaOf<string>,
      // Earlier operators wrote longer lists.
      limits.listed,
    ),
    usableOnCount: count('With checkpoint: number of these nodes; absent if all are listed.'),
    protection: choice(
      'With checkpoint: how a successor could get the memory. Frozen: a ready hot backup has it restored and stopped. Staged: the node of a ready hot backup has it as files. Cold: another node has it, and a cold backup must be woken or a pod created first. None: no other node could restore it. With source http, Warm: a running hot backup gets the pulled state; Cold: a cold backup gets it; None: no state was pulled, or only a new pod could get it.',
      protections,
    ),
    grantedTo: text(
      'With failover.grant: Heir: name of the hot backup that may take the slot without the operator; absent: none may, or its grant has been revoked.',
    ),
    lastFailover: object<SlotFailover>(
      {
        from: text('Name of the lost primary.'),
        to: text('Name of its successor.'),
        reason: text('Why the primary was lost.'),
        seconds: seconds('From the detection of the loss until the successor was on stage.'),
        at: time('Time of the takeover, RFC 3339.'),
        stateAge: seconds('With checkpoint: age of the state.'),
      },
      { from: true, to: true, reason: true, seconds: true, at: true },
      { description: 'The last takeover of this slot from a lost primary, by a backup or a new pod.' },
    ),
  },
  { slot: true, pod: true, epoch: true, ready: true },
)

const retainedSlot = object<RetainedSlot>(
  {
    slot: count('Number of the slot.'),
    pod: text('Name of its last primary.'),
    since: time('Time at which spec.replicas removed the slot, or spec.suspend ended its primary, RFC 3339.'),
    until: time(
      'End of the time for which its memory is kept, RFC 3339; raise spec.replicas before then to restore it. Absent: until spec.suspend is false.',
    ),
    generation: count('Number of the newest saved state that a node keeps; 0: none is known.'),
    savedAt: time('Time of the memory in that state, RFC 3339.'),
    bytes: count('Size of that state in bytes.', int64),
    keptOn: list(
      `Nodes that keep, or may keep, its memory; at most ${limits.usableOn}.`,
      { type: 'string' } as SchemaOf<string>,
      limits.usableOn,
    ),
    keptOnCount: count('Number of these nodes; absent if all are listed.'),
    unsureOn: list(
      `Those of these nodes whose agents are silent or have not said what they keep; at most ${limits.usableOn}. If they do not come back, their copies are lost.`,
      { type: 'string' } as SchemaOf<string>,
      limits.usableOn,
    ),
  },
  { slot: true, pod: true, since: true, generation: true, keptOn: true },
)

export const condition = object<Condition>(
  {
    type: text('Ready, Progressing, Degraded, Paused, Suspended or CheckpointReady.', { maxLength: 316 }),
    status: choice('True, False or Unknown.', ['True', 'False', 'Unknown']),
    reason: text('The reason in one word, for programs.', { maxLength: limits.conditionReason }),
    message: text('The reason in words.', { maxLength: limits.conditionMessage }),
    lastTransitionTime: time('When status last changed, RFC 3339.'),
    observedGeneration: count('The metadata.generation that this condition refers to.', {
      ...int64,
      minimum: 0,
    }),
  },
  {
    type: true,
    status: true,
    reason: true,
    message: true,
    lastTransitionTime: true,
    observedGeneration: true,
  },
)

const failover = (description: string) =>
  object<LastFailover>(
    {
      slot: count('Number of the slot that lost its primary.'),
      from: text('Name of the lost primary.'),
      to: text('Name of its successor.'),
      reason: text(
        'PodDeleted, PodFinished, Died (its app has ended), Ended (its app was ended by its agent, or by a restart of its node), NodeLost, Unready or CrashLoop.',
      ),
      seconds: {
        description:
          "Seconds from the operator's detection of the loss to the accepted write that put the successor on stage.",
        type: 'number',
      },
      at: time('Time of the takeover, RFC 3339.'),
      how: choice(
        'With checkpoint: how the successor got the memory. Frozen: it was already in the successor. Staged: from its own node. Fetched: from another node. Warm: the running successor got a pulled state. Cold: a cold backup was woken for it. Created: a pod was created for it. Empty: the successor started with empty memory; the event RestoredEmpty says why.',
        origins,
      ),
      generation: count('With checkpoint: number of the saved state that the successor resumed with.'),
      stateAge: seconds('With checkpoint: age of that state.'),
      phases: {
        description: 'With checkpoint: duration of each step in seconds, by its name.',
        type: 'object',
        additionalProperties: { type: 'number' },
      },
    },
    { slot: true, from: true, to: true, reason: true, seconds: true, at: true },
    { description },
  )

export const completion = object<Completion>(
  {
    pod: text('Name of the pod.'),
    at: time('When it ended, RFC 3339.'),
  },
  { pod: true, at: true },
  {
    description:
      'Only with restartPolicy OnFailure: the pod whose containers have all ended with success. No other pod continues, and the saved memory is deleted.',
  },
)

export const statusSchema = (): SchemaOf<BackupPodSetStatus> =>
  object<BackupPodSetStatus>(
    {
      observedGeneration: count('The metadata.generation that this status refers to.', int64),
      replicas: count(
        'Primaries that exist and are not being deleted; a slot counts once during a takeover.',
      ),
      hotbackups: count('Hot backups that exist and are not being deleted.'),
      coldbackups: count('Cold backups that exist and are not being deleted.'),
      readyReplicas: count('Primaries that are Ready; a slot counts once.'),
      readyHotbackups: count('Hot backups that are Ready.'),
      gatedColdbackups: count('Cold backups whose gate waits for the wake message.'),
      updatedPods: count('Pods made from the current template.'),
      primaryPodNames: names('primaries'),
      hotbackupPodNames: names('hot backups'),
      coldbackupPodNames: names('cold backups'),
      summary: object<Summary>(
        {
          replicas: text('Primaries, for example 2/3.'),
          hotbackups: text('Hot backups, for example 2/3.'),
          coldbackups: text('Cold backups, for example 2/3.'),
          ready: text('Primaries that are Ready, of those that the set wants, for example 2/3.'),
          readyBackups: text(
            'Hot backups that are Ready and cold backups at their gate, of those that the set wants, for example 2/3.',
          ),
          protection: choice(
            'With checkpoint: the protection of the slot that would lose most; see slots.',
            protections,
          ),
        },
        { replicas: true, hotbackups: true, coldbackups: true },
        {
          description:
            'The columns of kubectl get: the current and the desired number of each kind (current/desired), and how many of them are ready.',
        },
      ),
      selector: text('Label selector of the primaries of this set, for the scale subresource.'),
      retainedSlots: mapList(
        `With checkpoint: slots that a smaller replicas has removed, and whose memory is kept for checkpoint.retain, and slots whose primaries spec.suspend has ended. At most ${limits.listed}; retainedSlotCount counts all.`,
        'slot',
        retainedSlot,
        limits.listed,
      ),
      retainedSlotCount: count('With checkpoint: number of such slots; absent if all are listed.'),
      slots: mapList(
        `The slots and their primaries. A slot is the place of one primary and keeps its number through failovers; gaps are normal. At most ${limits.listed}, the lowest; replicas counts all.`,
        'slot',
        slot,
        limits.listed,
      ),
      lastTransition: object<LastTransition>(
        {
          pod: text('Name of the pod.'),
          from: choice('The kind before.', podKinds),
          to: choice('The kind after.', podKinds),
          at: time('Time of the conversion, RFC 3339.'),
        },
        { pod: true, from: true, to: true, at: true },
        { description: 'The last conversion of a pod.' },
      ),
      completion,
      lastFailover: failover('The last takeover from a lost primary, by a backup or a new pod.'),
      failovers: list(
        `The last ${limits.failovers} failovers, newest first. They survive a restart of the operator if the state store does.`,
        failover('One failover.'),
        limits.failovers,
      ),
      conditions: mapList(
        'Ready: all numbers are met and every pod does the task of its kind. Available: all primaries are ready, whatever the backups do. Progressing: the operator still has work to do. Degraded: an action fails, or containers keep failing. Paused: spec.paused is true. Suspended: only with spec.suspend, whether all pods have ended, and where the memory is kept. CheckpointReady: with checkpoint, whether every primary could be replaced with its memory. Reconciling and Stalled: the conventions of kstatus; Stalled is True if the set needs a change.',
        'type',
        condition,
        16,
      ),
    },
    {},
    { description: 'Observed state.' },
  )
