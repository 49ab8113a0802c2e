/** The objects of the page, kept by watches with the rights of the user. */
import { type BackupPodSet, backupPodSets } from '../../api/backuppodset.ts'
import { labels } from '../../api/labels.ts'
import { type MigratingPod, migratingPods } from '../../api/migrating-pod.ts'
import { type Migration, migrations } from '../../api/migration.ts'
import { type NodeReport, nodeReports, parseReport } from '../../api/node-report.ts'
import { elapses } from '../../kube/clock.ts'
import { isKubeError, messageOf } from '../../kube/errors.ts'
import type { KubeObject } from '../../kube/object.ts'
import { type Pod, pods } from '../../kube/resources.ts'
import type { Session } from '../session.ts'
import type { World } from '../world.ts'
import { createMirror, type Mirror, type Mirrored } from './mirror.ts'
import type { Head, MissingRight } from './wire.ts'

export interface Mirrors {
  /** The current state. Kinds that the user may not read are empty or undefined. */
  world(): World
  /** True once the sets have been read, or cannot be. */
  isFilled(): boolean
  missing(): readonly MissingRight[]
  /** Undefined: everything in `world` is the present. */
  lost(): Head['lost']
  /** Mirrors until the session ends. Never rejects because of the server or the network. */
  run(): Promise<void>
}

/** Milliseconds. */
const pulseEveryMs = 1_000
const pulseTimeoutMs = 2_000
const refreshTimeoutMs = 5_000

/** @param namespace undefined: all @param changed called after every change of anything that these functions return */
export function createMirrors(session: Session, namespace: string | undefined, changed: () => void): Mirrors {
  const { api, clock, signal } = session
  const mirrorOf = <O extends KubeObject>(what: Mirrored<O>): Mirror<O> =>
    createMirror(session, what, changed)
  const mirrored = {
    sets: mirrorOf<BackupPodSet>({ resource: backupPodSets, namespace, shows: 'sets' }),
    pods: mirrorOf<Pod>({
      ...{ resource: pods, namespace, labelSelector: labels.set },
      shows: 'which pods would follow',
    }),
    reports: mirrorOf<NodeReport>({
      ...{ resource: nodeReports, transform: parseReport },
      shows: 'the newest states, and which pods have them',
    }),
    migrations: mirrorOf<Migration>({ resource: migrations, namespace, shows: 'moves' }),
    migratingPods: mirrorOf<MigratingPod>({
      ...{ resource: migratingPods, namespace, shows: 'problems of MigratingPods' },
    }),
  }
  const all: readonly Pick<Mirror<KubeObject>, keyof Mirror<KubeObject>>[] = Object.values(mirrored)
  let lost: Head['lost']
  let lastWell = clock.now()

  const refresh = (which: readonly Pick<Mirror<KubeObject>, 'refresh'>[]): Promise<unknown> => {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(refreshTimeoutMs)])
    // A mirror that does not get there tells so itself.
    return Promise.allSettled(which.map(mirror => mirror.refresh(limit)))
  }
  const ailing = () => all.filter(mirror => mirror.problem() !== undefined)
  /** @returns why the mirrors may be behind */
  const examine = async (): Promise<string | undefined> => {
    try {
      await api.request('GET', '/version', { signal, timeoutMs: pulseTimeoutMs })
    } catch (error) {
      // An answer is an answer: each mirror tells which rights are missing.
      if (!isKubeError(error, 'Forbidden')) return messageOf(error)
    }
    // A watch may have died without a word while the server was away, so that all take a fresh snapshot.
    if (lost !== undefined) await refresh(all)
    else if (ailing().length > 0) await refresh(ailing())
    return ailing()[0]?.problem()
  }
  const pulse = async () => {
    do {
      const why = await examine()
      if (signal.aborted) return
      const before = lost
      if (why === undefined) {
        lastWell = clock.now()
        lost = undefined
      } else lost = { since: lost?.since ?? lastWell, why }
      if (before?.since !== lost?.since || before?.why !== lost?.why) changed()
    } while (await elapses(clock, pulseEveryMs, signal))
  }
  return {
    world: () => ({
      sets: mirrored.sets.objects() ?? [],
      pods: mirrored.pods.objects() ?? [],
      reports: mirrored.reports.objects(),
      migrations: mirrored.migrations.objects(),
      migratingPods: mirrored.migratingPods.objects(),
    }),
    isFilled: () => all.every(mirror => mirror.isFilled()),
    missing: () => all.flatMap(mirror => mirror.missing()),
    lost: () => lost,
    async run() {
      await Promise.all([pulse(), ...all.map(mirror => mirror.run())])
    },
  }
}
