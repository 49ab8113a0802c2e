/** The paper's story as data: the operations, their expected results, and the paper's measurements. */
import { type BackupPodSet, backupPodSets } from '../src/api/backuppodset.ts'
import type { Api } from '../src/kube/api.ts'
import { pods } from '../src/kube/resources.ts'
import { type Changes, slotDeviations } from './check.ts'
import { type Numbers, type PodRow, staying } from './picture.ts'

export interface Operation {
  readonly title: string
  /** Two or three sentences: what to look for. */
  readonly tells: readonly string[]
  /**
   * The command that a user would type. The demo sends the same request itself, so that its time does not include
   * kubectl's.
   */
  readonly command: (rows: readonly PodRow[]) => string
  /** Numbers at the end. */
  readonly wish: Numbers
  readonly expected: Changes
  /** Seconds that the paper reports for the same operation, and how that operation differs. */
  readonly paper: { readonly seconds: number; readonly note?: string }
  readonly act: (scene: Scene) => Promise<Acted>
}

export interface Scene {
  readonly api: Api
  readonly namespace: string
  readonly set: BackupPodSet
  readonly rows: readonly PodRow[]
  readonly signal: AbortSignal
}

export interface Acted {
  /** True if the pods show the first effect of the request. */
  readonly begun: (rows: readonly PodRow[]) => boolean
  /** Checks that only this operation needs. */
  readonly check?: (after: readonly PodRow[]) => string[]
}

const all = (count: number): Numbers => ({ primary: count, hotbackup: count, coldbackup: count })

const scaleTo =
  (count: number): Operation['act'] =>
  async ({ api, namespace, set, signal }) => {
    const spec = { replicas: count, hotBackups: count, coldBackups: count }
    await api.patch(
      backupPodSets,
      { namespace, name: set.metadata.name },
      { type: 'merge', body: { spec } },
      { signal },
    )
    return { begun: () => true }
  }

const scaleCommand = (count: number) => () =>
  `kubectl patch bps bps-sample --type merge -p '{"spec":{"replicas":${count},"hotBackups":${count},"coldBackups":${count}}}'`

const victimIn = (rows: readonly PodRow[]): PodRow | undefined =>
  staying(rows).find(({ kind }) => kind === 'primary')

export const operations = {
  create: {
    title: 'Create: 2 primaries, 2 hot backups, 2 cold backups',
    tells: [
      'One object, as in the paper. Primaries serve. Hot backups run, but no Service selects them.',
      'Cold backups have a node and their resources, and wait at a gate before their containers start (Init:0/1).',
    ],
    command: () => 'kubectl apply -f samples/paper.yaml',
    wish: all(2),
    expected: { created: all(2) },
    paper: { seconds: 5.344 },
    async act({ api, namespace, set, signal }) {
      await api.create(backupPodSets, set, { namespace, signal })
      return { begun: () => true }
    },
  },
  failure: {
    title: 'Lose a primary',
    tells: [
      'A hot backup takes its slot by a change of labels: same pod, same address, no restart.',
      'A cold backup is woken over TCP and becomes the next hot backup; a new cold backup is created.',
    ],
    command: rows => `kubectl delete pod ${victimIn(rows)?.name ?? ''}`,
    wish: all(2),
    expected: { created: { coldbackup: 1 }, deleted: { primary: 1 }, hotToPrimary: 1, coldToHot: 1 },
    paper: { seconds: 1.933, note: 'at 1/1/1' },
    async act({ api, namespace, rows, signal }) {
      const victim = victimIn(rows)
      if (victim === undefined) throw new Error('the set has no primary to lose')
      await api.delete(pods, { namespace, name: victim.name }, { uid: victim.uid }, { signal })
      return {
        begun: now => !staying(now).some(({ uid }) => uid === victim.uid),
        check: after => slotDeviations(victim, after),
      }
    },
  },
  scaleUp: {
    title: 'Traffic grows: 3/3/3',
    tells: [
      'Conversions before creations: one hot backup serves at once, two cold ones become hot, three new ones are created.',
    ],
    command: scaleCommand(3),
    wish: all(3),
    expected: { created: { coldbackup: 3 }, hotToPrimary: 1, coldToHot: 2 },
    paper: { seconds: 3.681 },
    act: scaleTo(3),
  },
  scaleDown: {
    title: 'Traffic falls: 1/1/1',
    tells: [
      'Two of each kind are deleted. No pod is demoted; the strategy of the set chooses those that stay.',
    ],
    command: scaleCommand(1),
    wish: all(1),
    expected: { deleted: all(2) },
    paper: { seconds: 2.137 },
    act: scaleTo(1),
  },
} as const satisfies Record<string, Operation>
