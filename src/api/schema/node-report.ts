import type { GrantWord } from '../grant.ts'
import {
  type Budget,
  type Heartbeats,
  type NodeCheck,
  type NodeReportStatus,
  paceReasons,
  reportLimits,
  type SlotReport,
  type WrittenSlotReport,
} from '../node-report.ts'
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
    name: text('Name of the check: criu, canary, sentinel and others.', { maxLength: 63 }),
    ok: flag('True if the check passed.'),
    message: text('Result of the check.'),
    cure: text('What to change; only if the check failed.'),
  },
  { name: true, ok: true, message: true },
)

const slot = object<WrittenSlotReport>(
  {
    namespace: text('Namespace of the slot.'),
    name: text('Name of the slot: that of its Lease.'),
    incarnation: text(
      'Identifies the incarnation of the slot: a slot that is begun again inherits no memory.',
    ),
    // The version before reads and writes these instead of name and incarnation.
    set: text('Deprecated, see name: name of the set.'),
    slot: count('Deprecated, see name: number of the slot.'),
    life: text('Deprecated, see incarnation.'),
    role: choice('source: the primary of the slot runs on this node. holder: this node keeps its memory.', [
      'source',
      'holder',
    ]),
    generation: count('Number of the newest complete generation (saved state); 0: none yet.', int64),
    epoch: count('Epoch of that generation. A later epoch is newer, whatever the generation number.', int64),
    signed: flag('True if the node that saved it has signed it.'),
    takenAt: time("Time of the memory in that generation, by the source's clock, RFC 3339."),
    bytes: count('Size of that generation in bytes.', int64),
    frozenSeconds: seconds('How long the primary was stopped for it.'),
    pipelineSeconds: seconds('From the stop of the primary until the generation was complete here.'),
    usable: choice(
      'How the memory can be restored from here: Frozen in an understudy, Staged as files on its node, or Cold, by a pod that must be woken or created first. Absent: not at all, or not yet.',
      ['Frozen', 'Staged', 'Cold'],
    ),
    understudyUid: text('UID of the hot backup that holds it frozen.'),
    onDisk: object<NonNullable<SlotReport['onDisk']>>(
      {
        generation: count('Number of the generation on the disk.', int64),
        takenAt: time("Time of the memory in that generation, by the source's clock, RFC 3339."),
      },
      { generation: true, takenAt: true },
      { description: "The encrypted copy on the node's disk; absent: there is none." },
    ),
    diskReason: text(
      "Why the node's disk takes no newer generation of this slot, although it takes those of others: DiskShareFull. For a reason that concerns all slots, see status.disk.",
    ),
    intervalSeconds: seconds(
      'Time between two checkpoints, adapted to how long they take; only for a source.',
    ),
    intervalReason: choice(
      'Why that is longer than the interval in the spec: FreezeBudget (maxFreezePercent), Busy (the node would do nothing but save) or HoldersBehind (no holder has fetched the newest generation in time); only for a source.',
      paceReasons,
    ),
    final: flag(
      'True if this is the last state of a primary that is stopped for a handover; for a holder, also that its understudy can resume with it at once.',
    ),
    successorGeneration: count(
      'While a handover names a pod on this node: the generation with which that pod can continue at once; absent: none; only for a holder.',
      int64,
    ),
    standsForSeconds: seconds(
      'How long the primary stays stopped after its last state is reported; only for a source.',
    ),
    stoodForSeconds: seconds('How long the primary had been stopped by then; only for a source.'),
    standsForHandover: count(
      'The handover for which the primary is stopped, as counted in the Lease of the slot; only for a source.',
    ),
    handoverPaused: flag(
      'True if the primary was stopped for a handover that did not succeed, and is not stopped for another one for now; only for a source.',
    ),
    answeredRequest: text(
      'Value of the annotation checkpoint-requested of the primary that this generation, or an earlier one, answers; only for a source.',
    ),
    acknowledged: object<NonNullable<SlotReport['acknowledged']>>(
      {
        term: count('Term of the voters.', int64),
        version: count('Version of the voters in that term.', int64),
      },
      { term: true, version: true },
      { description: 'The latest voters that the primary has acknowledged; only for a source.' },
    ),
    fenced: flag(
      'True while the primary is stopped because too few of its voters answer; only for a source.',
    ),
    ended: text(
      'UID of the primary, if its pod was deleted by force and the agent has ended its processes; only for a source.',
    ),
    silentTerm: count(
      'The latest term of the slot in which this node has stated that the primary is silent.',
      int64,
    ),
    suspectTerm: count('The term of the slot in which this node will soon state that.', int64),
    grant: object<GrantWord>(
      {
        closed: count('The agent uses no grant up to this number from now on.', int64),
        used: count('The grant that the agent has used, or may have used.', int64),
      },
      { closed: true },
      { description: 'Grants by which the heir takes the slot without the operator; absent: not known.' },
    ),
    reason: text('Why there is no newer generation, or why it is not usable: one word, for programs.'),
    message: text('The reason in words, and what to change.'),
  },
  { namespace: true, role: true, generation: true },
)

const budget = (description: string) =>
  object<Budget>(
    {
      bytes: count('Bytes in use.', int64),
      budget: count('Bytes that may be used.', int64),
      reason: text('Why nothing is written although it should be: one word, for programs.'),
      message: text('The reason in words, and what to change.'),
    },
    { bytes: true, budget: true },
    { description },
  )

type Written = Omit<NodeReportStatus, 'slots'> & { readonly slots: readonly WrittenSlotReport[] }

const status = (): SchemaOf<Written> =>
  object<Written>(
    {
      version: text('Version of the agent.'),
      address: text('host:port at which other agents reach this agent.'),
      fingerprint: text(
        'SHA-256 in hex of the public key by which other agents authenticate this agent; they accept no other key.',
        { pattern: '^[0-9a-f]{64}$' },
      ),
      signs: flag('True if the agent signs its generations with that key.'),
      clones: flag('True if the agent can copy the memory of one slot for another.'),
      heartbeats: object<Heartbeats>(
        {
          port: count('UDP port of the sentinel.'),
          run: text('Distinguishes the sentinel from one that made other promises.', {
            pattern: '^[0-9a-f]{16}$',
          }),
          key: text(
            'Public key that has the fingerprint, in hex: from it two nodes derive the key of their heartbeats.',
            {
              pattern: '^[0-9a-f]{182}$',
            },
          ),
        },
        { port: true, run: true, key: true },
        {
          description:
            'How the sentinel of the node hears other nodes; absent: it neither votes nor is voted on.',
        },
      ),
      diskKey: text(
        "X25519 public key, in base64url, of this boot of the node: the operator encrypts the node's half of the keys for generations on its disk for it.",
        { pattern: '^[A-Za-z0-9_-]{43}$' },
      ),
      kernel: text('Kernel release.'),
      criu: text('Version of the CRIU that the agent installs.'),
      architecture: text('Processor architecture, as uname prints it.'),
      cpuFeatures: list(
        'CPU features that programs find on every processor of the node: memory is restored only on nodes with all features of its source.',
        text('Name of a feature, as in /proc/cpuinfo.', { maxLength: reportLimits.cpuFeature }),
        reportLimits.cpuFeatures,
      ),
      checks: mapList(
        'Checks of the agent; each failed check has a cure.',
        'name',
        check,
        reportLimits.checks,
      ),
      ready: flag('True if every check passed: memory can be saved and restored on this node.'),
      slots: list(
        `Slots that this node has or is to keep, those with generations first; at most ${reportLimits.slots}.`,
        slot,
        reportLimits.slots,
      ),
      retired: flag(
        'True if the agent has removed all its traces from the node, as the annotation backup.example.com/retire-requested asks for.',
      ),
      slotsKnown: flag(
        'True if slots lists everything that is kept here. False while an agent starts: slots is then the last known list, and the memory of a slot that is missing from it may still be here.',
      ),
      memory: budget("The node's memory that generations use."),
      disk: budget("The node's disk space that generations use; absent: no disk is used."),
      slotCount: count(
        'Length of slots, and the number of slots with generations for which it has no room, as kubectl get prints it. If slots lists fewer, the memory of a slot that is missing from it may still be here.',
      ),
      updatedAt: time('Time of the last write, RFC 3339. A working agent writes at least every few seconds.'),
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
    { description: 'Findings of the agent of the node.' },
  )

/** openAPIV3Schema of v1alpha1. */
export const nodeReportSchema = (): Schema => ({
  description:
    'NodeReport says what the agent of one node can do and what it keeps. It has the name of the node, and only that agent writes it.',
  type: 'object',
  properties: {
    apiVersion: text('API version of this kind: backup.example.com/v1alpha1.'),
    kind: text('Name of this kind: NodeReport.'),
    metadata: { type: 'object' },
    status: status(),
  },
})
