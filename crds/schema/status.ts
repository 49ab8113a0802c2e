import {
  type BackupPodSetStatus,
  type Condition,
  type LastFailover,
  type LastTransition,
  limits,
  origins,
  protections,
  type RetainedSlot,
  type SlotFailover,
  type SlotStatus,
  type Summary,
} from '../../src/api/backuppodset.ts'
import { podKinds } from '../../src/api/labels.ts'
import { choice, count, flag, list, mapList, object, type SchemaOf, seconds, text, time } from './build.ts'

const int64 = { format: 'int64' }

const names = (of: string) =>
  list(
    `Names of the ${of}, in order; at most ${limits.listed}, the counts go on.`,
    { type: 'string' } as SchemaOf<string>,
    limits.listed,
  )

const slot = object<SlotStatus>(
  {
    slot: count('Number of the slot.'),
    pod: text('Name of its primary.'),
    node: text('Node of its primary.'),
    epoch: count('Grows with each promotion of the slot.', int64),
    ready: flag('Whether its primary is Ready.'),
    generation: count(
      'With checkpoint: the newest saved state that a node keeps for a successor; 0: none yet.',
    ),
    savedAt: time(
      'With checkpoint: the moment whose memory a successor would go on with, RFC 3339. Written once a minute at most: what is kept may be newer.',
    ),
    intervalSeconds: seconds(
      'With checkpoint: time between two checkpoints, as adapted to maxFreezePercent; the memory of a successor is at most so old and pipelineSeconds more.',
    ),
    intervalReason: text(
      'With checkpoint: why intervalSeconds is more than spec.checkpoint.interval: FreezeBudget, Busy or HoldersBehind; absent: it is not.',
    ),
    pipelineSeconds: seconds(
      'With checkpoint: how long the newest saved state took from the stop of the primary until it was complete on another node.',
    ),
    usableOn: list(
      `With checkpoint: nodes on which a successor could go on with it; at most ${limits.usableOn}.`,
      { type: 'string' } as SchemaOf<string>,
      // Earlier operators wrote longer lists.
      limits.listed,
    ),
    usableOnCount: count('With checkpoint: how many they are; absent where all are listed.'),
    protection: choice(
      'With checkpoint: Frozen, Staged, Warm (a running hot backup is given the pulled state) or Cold, by the best backup that could take over with the memory; None: it would be lost, or only a new pod could go on with it.',
      protections,
    ),
    lastFailover: object<SlotFailover>(
      {
        from: text('Name of the lost primary.'),
        to: text('Name of its successor.'),
        reason: text('Why it was lost.'),
        seconds: seconds('From the first sight of the loss to the successor on stage.'),
        at: time('When, RFC 3339.'),
        stateAge: seconds('With checkpoint: how old the state was.'),
      },
      { from: true, to: true, reason: true, seconds: true, at: true },
      { description: 'The last time that a backup or a new pod took over this slot from a lost primary.' },
    ),
  },
  { slot: true, pod: true, epoch: true, ready: true },
)

const retainedSlot = object<RetainedSlot>(
  {
    slot: count('Number of the slot.'),
    pod: text('Name of its last primary.'),
    since: time('Since when the set has no place for it, RFC 3339.'),
    until: time('Its memory is kept until then, RFC 3339; raise spec.replicas before to have it back.'),
    generation: count('The newest saved state that a node keeps; 0: none is known of.'),
    keptOn: list(
      `Nodes that keep its memory, or may; at most ${limits.usableOn}.`,
      { type: 'string' } as SchemaOf<string>,
      limits.usableOn,
    ),
    keptOnCount: count('How many they are; absent where all are listed.'),
  },
  { slot: true, pod: true, since: true, until: true, generation: true, keptOn: true },
)

const condition = object<Condition>(
  {
    type: text('Ready, Progressing, Degraded, Paused or CheckpointReady.', { maxLength: 316 }),
    status: choice('True, False or Unknown.', ['True', 'False', 'Unknown']),
    reason: text('Why, in one word for programs.', { maxLength: limits.conditionReason }),
    message: text('Why, for people.', { maxLength: limits.conditionMessage }),
    lastTransitionTime: time('When status last changed, RFC 3339.'),
    observedGeneration: count('The metadata.generation that this condition speaks of.', {
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
      reason: text('PodDeleted, PodFinished, Died, Unready or CrashLoop.'),
      seconds: {
        description:
          "Seconds from the operator's first sight of the loss to the accepted write that put the successor on stage.",
        type: 'number',
      },
      at: time('When, RFC 3339.'),
      how: choice(
        'With checkpoint: how the successor got the memory. Frozen: it lay in it. Staged: on its node. Fetched: from another node. Warm: it ran and was given a pulled state. Cold: a cold backup was woken for it. Created: a pod was made for it. Empty: nobody had it.',
        origins,
      ),
      generation: count('With checkpoint: the saved state that the successor went on with.'),
      stateAge: seconds('With checkpoint: how old that state was.'),
      phases: {
        description: 'With checkpoint: seconds of each step, by its name.',
        type: 'object',
        additionalProperties: { type: 'number' },
      },
    },
    { slot: true, from: true, to: true, reason: true, seconds: true, at: true },
    { description },
  )

export const statusSchema = (): SchemaOf<BackupPodSetStatus> =>
  object<BackupPodSetStatus>(
    {
      observedGeneration: count('The metadata.generation that this status speaks of.', int64),
      replicas: count(
        'Primaries that exist and are not being deleted; a slot that changes hands counts once.',
      ),
      hotbackups: count('Hot backups that exist and are not being deleted.'),
      coldbackups: count('Cold backups that exist and are not being deleted.'),
      readyReplicas: count('Primaries that are Ready, a slot once.'),
      readyHotbackups: count('Hot backups that are Ready.'),
      gatedColdbackups: count('Cold backups whose gate waits for its wake message.'),
      updatedPods: count('Pods made from the current template.'),
      primaryPodNames: names('primaries'),
      hotbackupPodNames: names('hot backups'),
      coldbackupPodNames: names('cold backups'),
      summary: object<Summary>(
        {
          replicas: text('Primaries, as 2/3.'),
          hotbackups: text('Hot backups, as 2/3.'),
          coldbackups: text('Cold backups, as 2/3.'),
        },
        { replicas: true, hotbackups: true, coldbackups: true },
        {
          description:
            'Current and desired number of each kind as current/desired, as kubectl get prints it.',
        },
      ),
      selector: text('Label selector of the primaries of this set, for the scale subresource.'),
      retainedSlots: mapList(
        `With checkpoint: slots that a smaller replicas has taken away, and whose memory is kept for checkpoint.retain. At most ${limits.listed}, retainedSlotCount goes on.`,
        'slot',
        retainedSlot,
        limits.listed,
      ),
      retainedSlotCount: count('With checkpoint: how many slots are kept so; absent where all are listed.'),
      slots: mapList(
        `Who holds which slot. A slot is the place of one primary and keeps its number through failovers; gaps are normal. At most ${limits.listed}, the lowest; replicas goes on.`,
        'slot',
        slot,
        limits.listed,
      ),
      lastTransition: object<LastTransition>(
        {
          pod: text('Name of the pod.'),
          from: choice('The kind it was.', podKinds),
          to: choice('The kind it became.', podKinds),
          at: time('When, RFC 3339.'),
        },
        { pod: true, from: true, to: true, at: true },
        { description: 'The last conversion of a pod.' },
      ),
      lastFailover: failover('The last time a backup or a new pod took over from a lost primary.'),
      failovers: list(
        `The last ${limits.failovers}, newest first; they survive operators, as far as the state store does.`,
        failover('One of them.'),
        limits.failovers,
      ),
      conditions: mapList(
        'Ready: all numbers are met and every pod does what its kind is for. Progressing: there is something left to do. Degraded: an action fails, or containers keep failing. Paused: spec.paused. CheckpointReady: with checkpoint, whether every primary could be replaced with its memory.',
        'type',
        condition,
        16,
      ),
    },
    {},
    { description: 'What is observed.' },
  )
