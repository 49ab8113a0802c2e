import {
  type Budget,
  type NodeCheck,
  type NodeReportStatus,
  paceReasons,
  reportLimits,
  type SlotReport,
} from '../../src/api/node-report.ts'
import {
  choice,
  count,
  flag,
  list,
  mapList,
  object,
  type Schema,
  type SchemaOf,
  seconds,
  text,
  time,
} from './build.ts'

const int64 = { format: 'int64' }

const check = object<NodeCheck>(
  {
    name: text('What was checked: criu, canary, sentinel and others.', { maxLength: 63 }),
    ok: flag('Whether it holds.'),
    message: text('What was found.'),
    cure: text('What to change; only of a check that failed.'),
  },
  { name: true, ok: true, message: true },
)

const slot = object<SlotReport>(
  {
    namespace: text('Namespace of the set.'),
    set: text('Name of the set.'),
    slot: count('Number of the slot.'),
    life: text('Which life of the slot: a number that is used again inherits nothing.'),
    role: choice('source: its primary runs here. holder: its memory is kept here.', ['source', 'holder']),
    generation: count('The newest saved state that is complete; 0: none yet.', int64),
    epoch: count('The epoch in which that was saved: a later one is newer whatever its number.', int64),
    signed: flag('Whether it bears the signature of the node that saved it.'),
    takenAt: time("The instant whose memory it is, by the source's clock, RFC 3339."),
    bytes: count('Size of that state in bytes.', int64),
    frozenSeconds: seconds('How long the primary stood still for it.'),
    pipelineSeconds: seconds('From the stop of the primary until it was complete here.'),
    usable: choice(
      'How it could go on from here: frozen in an understudy, staged on its node, or Cold, by a pod that has to be woken or made first. Absent: it could not, or not yet.',
      ['Frozen', 'Staged', 'Cold'],
    ),
    understudyUid: text('UID of the hot backup in which it lies frozen.'),
    onDisk: object<NonNullable<SlotReport['onDisk']>>(
      {
        generation: count('The saved state that is there.', int64),
        takenAt: time("The instant whose memory it is, by the source's clock, RFC 3339."),
      },
      { generation: true, takenAt: true },
      { description: "What of it is on the node's disk, encrypted; absent: nothing." },
    ),
    intervalSeconds: seconds(
      'Time between two checkpoints, as adapted to how long they take; of a source only.',
    ),
    intervalReason: choice(
      'Why that is longer than the interval asked for: FreezeBudget (maxFreezePercent), Busy (the node would only save) or HoldersBehind (no holder has fetched the newest in time); of a source only.',
      paceReasons,
    ),
    final: flag(
      'Whether it is the last state of a primary that stands still for its successor; of a holder also that its understudy could go on with it at once.',
    ),
    standsForSeconds: seconds(
      'How long its primary stands still from the moment at which its last state is reported; of a source only.',
    ),
    standsForHandover: count(
      'Which handover of its slot it stands still for, as the Lease counts them; of a source only.',
    ),
    handoverPaused: flag(
      'Whether its primary stood still for a successor in vain and is not to do so again for now; of a source only.',
    ),
    answeredRequest: text(
      'The annotation checkpoint-requested of the primary that this generation, or one before it, answers; of a source only.',
    ),
    reason: text('Why there is no newer state or why it is not usable, in one word for programs.'),
    message: text('The same for people, with what to change.'),
  },
  { namespace: true, set: true, slot: true, life: true, role: true, generation: true },
)

const budget = (description: string) =>
  object<Budget>(
    {
      bytes: count('Taken up, in bytes.', int64),
      budget: count('Bytes that may be taken up.', int64),
      reason: text('Why nothing is written there though it should be, in one word for programs.'),
      message: text('The same for people, with what to change.'),
    },
    { bytes: true, budget: true },
    { description },
  )

const status = (): SchemaOf<NodeReportStatus> =>
  object<NodeReportStatus>(
    {
      version: text('Version of the agent.'),
      address: text('host:port at which other agents reach it.'),
      fingerprint: text(
        'SHA-256 in hex of the public key with which the agent proves itself to others; they accept no other.',
        { pattern: '^[0-9a-f]{64}$' },
      ),
      signs: flag('Whether it signs what it saves with that key.'),
      kernel: text('Release of the kernel.'),
      criu: text('Version of CRIU that the agent brings.'),
      architecture: text('Architecture of the processor, as uname names it.'),
      cpuFeatures: list(
        'Instructions that programs find on every processor: memory goes on only where all of those are that its source has.',
        text('Name of a feature, as in /proc/cpuinfo.', { maxLength: reportLimits.cpuFeature }),
        reportLimits.cpuFeatures,
      ),
      checks: mapList(
        'What the agent has checked, each failure with its cure.',
        'name',
        check,
        reportLimits.checks,
      ),
      ready: flag('Whether every check holds: memory can be saved and restored here.'),
      slots: list(
        `Slots of which something is here; at most ${reportLimits.slots}, slotCount goes on.`,
        slot,
        reportLimits.slots,
      ),
      retired: flag(
        'Whether nothing of the agents is left on the node, as the annotation backup.example.com/retire-requested asks for.',
      ),
      slotsKnown: flag(
        'Whether slots is all that is kept here. False while an agent starts: slots is then what was said last, and a slot that is missing there is not known to be gone.',
      ),
      memory: budget('What saved states take up in the memory of the node.'),
      disk: budget("What saved states take up on the node's disk; absent: none is used."),
      slotCount: count(
        'Number of slots of which something is here, as kubectl get prints it; where slots has fewer, one that is missing there is not known to be gone.',
      ),
      updatedAt: time(
        'When this was written, RFC 3339. An agent that works writes at least every few seconds.',
      ),
    },
    {
      version: true,
      address: true,
      fingerprint: true,
      kernel: true,
      criu: true,
      architecture: true,
      checks: true,
      ready: true,
      slots: true,
      updatedAt: true,
    },
    { description: 'What the agent of the node has found.' },
  )

/** openAPIV3Schema of v1alpha1. */
export const nodeReportSchema = (): Schema => ({
  description:
    'NodeReport is what the agent of one node can do and what it keeps; it has the name of the node, and that agent alone writes it.',
  type: 'object',
  properties: {
    apiVersion: text('Version of this kind: backup.example.com/v1alpha1.'),
    kind: text('The kind itself: NodeReport.'),
    metadata: { type: 'object' },
    status: status(),
  },
})
