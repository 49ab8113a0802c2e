import type { ProjectName } from '../reporter/results.ts'
import { design } from './design.ts'
import type { Feature, FeatureGroup } from './feature.ts'
import { migratingPod } from './migrating-pod.ts'
import { podMigrationJob } from './pod-migration-job.ts'

const feature = (id: string, title: string, provenBy: ProjectName): Feature => ({ id, title, provenBy })

const backupPodSet: FeatureGroup = {
  name: 'BackupPodSet',
  features: [
    feature('F01', 'the kind BackupPodSet, short name bps, installs and is listed', 'apiserver'),
    feature(
      'F02',
      'every field of the spec; the example applies unchanged, bad values are refused',
      'apiserver',
    ),
    feature('F03', 'status is a subresource: the main resource cannot write it', 'apiserver'),
    feature('F04', 'status has number and names of each kind, equal to the pods at rest', 'e2e'),
    feature('F05', 'status is refreshed in every pass; a stale one is put right', 'apiserver'),
    feature(
      'F06',
      'columns NAME NAMESPACE REPLICAS HOTBACKUPS COLDBACKUPS AGE, as current/desired',
      'apiserver',
    ),
    feature(
      'F07',
      'events go through a queue, first-in first-out among those of one urgency; none is lost over a reconnect',
      'apiserver',
    ),
    feature('F08', 'three kinds of pod by label type: primary, hotbackup, coldbackup', 'e2e'),
    feature('F09', 'pod names are <set>-<12 hex digits>', 'apiserver'),
    feature('F10', 'a Service on type=primary reaches primaries and nothing else', 'e2e'),
    feature('F11', 'hot backups run and get no traffic', 'e2e'),
    feature('F12', 'cold backups reserve resources on a node without starting a container', 'e2e'),
    feature(
      'F13',
      'the gate of a cold backup is an init container with a TCP server: Init:0/1 until it opens',
      'e2e',
    ),
    feature('F14', "the template's own init containers run beside the gate, in both orders", 'e2e'),
    feature('F15', 'the first pass makes all three kinds', 'e2e'),
    feature('F16', 'hot backup to primary in place: same UID, same IP, no restart, endpoint appears', 'e2e'),
    feature('F17', 'cold backup to primary when no hot backup is left', 'e2e'),
    feature('F18', 'a new primary is created only when no backup is left', 'e2e'),
    feature('F19', 'cold backup to hot backup comes before a new hot backup', 'e2e'),
    feature('F20', 'cold backups are refilled after each conversion', 'e2e'),
    feature('F21', 'exactly the surplus of each kind is deleted', 'e2e'),
    feature('F22', 'the shorter unavailable time goes first: hot, then cold, then new', 'e2e'),
    feature('F23', 'strict order of tiers: a lower one waits until the upper one is exact', 'apiserver'),
    feature('F24', 'one failure cascades: hot to primary, cold to hot, new cold, in one pass', 'e2e'),
    feature('F25', 'scaling 2/2/2 to 3/3/3 converts three pods and creates three', 'e2e'),
    feature('F26', 'scaling 3/3/3 to 1/1/1 deletes six; the policy chooses who stays', 'e2e'),
    feature('F27', 'each strategy key is honoured for its own transition', 'unit'),
    feature('F28', 'policy random draws evenly', 'unit'),
    feature('F29', 'another scheduler can place the pods and sees the strategy on them', 'apiserver'),
    feature('F30', 'schedulerName is on every created pod', 'apiserver'),
    feature('F31', 'wakeupTimeout bounds a wake-up; a silent gate never stalls the loop', 'e2e'),
    feature('F32', 'deleting the set deletes its pods and nothing is created meanwhile', 'e2e'),
    feature('F33', 'a lost primary is seen by watching pods, not by a resync', 'e2e'),
    feature('F34', 'after errors of the API the pass is repeated until it converges', 'apiserver'),
    feature('F35', 'one command installs the operator, with no right that it does not use', 'e2e'),
    feature('F36', 'times of creation, update and failure are measured by one command', 'e2e'),
    feature('F37', 'a lost hot backup and a lost cold backup are replaced', 'e2e'),
    feature('F38', 'failures at the same time: a primary with a hot backup, all primaries', 'e2e'),
    feature(
      'F39',
      'hot backups run and are in step: they are given the state of a primary at each interval',
      'apiserver',
    ),
    feature(
      'F40',
      'a model outside chooses transitions by annotations; nobody waits for it, and chance fills in',
      'apiserver',
    ),
  ],
}

/**
 * Rows that differ, at least partly, from the paper. docs/paper.md gives the reason for each, and how to get the
 * paper's behaviour.
 */
export const deviating: readonly string[] = [
  ...['F02', 'F05', 'F07', 'F13', 'F23', 'F27', 'F29', 'F31', 'F33', 'F34', 'F39', 'F40'],
]

export const groups: readonly FeatureGroup[] = [backupPodSet, ...design, migratingPod, podMigrationJob]
