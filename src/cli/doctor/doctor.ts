import { keptBy } from '../../api/kept-by.ts'
import { podMigrationJobs } from '../../api/pod-migration-job.ts'
import { exitCodes } from '../failure.ts'
import { answer } from '../output/answer.ts'
import type { Session } from '../session.ts'
import { painter } from '../terminal.ts'
import { agentsFindings } from './agents.ts'
import { budgetsFindings } from './budgets.ts'
import { about, type Finding } from './finding.ts'
import { type Installation, type Places, readInstallation } from './installation.ts'
import { jobsFindings } from './jobs.ts'
import { kindsFindings, type SchemaNode } from './kinds.ts'
import { limitRangeFindings } from './limit-ranges.ts'
import { migratingPodsFindings } from './migrating-pods.ts'
import { movesFindings } from './moves.ts'
import { nodesFindings } from './nodes.ts'
import { operatorFindings } from './operator.ts'
import { renderFindings } from './render.ts'
import { rightsFindings } from './rights.ts'
import { setsFindings } from './sets.ts'

export interface DoctorOptions extends Places {}

/**
 * Examines the installation and prints the findings.
 *
 * @returns 1 if something is broken. @throws KubeError when nothing can be examined at all.
 */
export async function doctor(session: Session, places: DoctorOptions): Promise<number> {
  const { terminal, output, progress } = session
  const installation = await progress.wait('examine the installation', () =>
    readInstallation(session, places),
  )
  const findings = examine(installation, places, await ownSchemas())
  const broken = findings.filter(({ verdict }) => verdict === 'broken').length
  answer(session, 'DoctorReport', { broken, findings }, () =>
    renderFindings(findings, painter(terminal.colour), output === 'wide'),
  )
  return broken > 0 ? exitCodes.failed : exitCodes.done
}

/** Returns all findings about an installation. Pure. */
export function examine(
  installation: Installation,
  places: Places,
  schemas: Parameters<typeof kindsFindings>[1],
): readonly Finding[] {
  const { identity, kubernetes, server, sets, rights } = installation
  const { ok } = about('cluster')
  const memoryWanted = sets.ok && sets.value.some(set => keptBy(set) === 'memory')
  return [
    ok('api server', `${server}, Kubernetes ${kubernetes}`),
    ...kindsFindings(installation, schemas),
    ...operatorFindings(installation, places),
    ...agentsFindings({ ...installation, memoryWanted }, places),
    ...nodesFindings(installation),
    ...setsFindings(installation),
    ...limitRangeFindings(installation),
    ...movesFindings(installation),
    ...migratingPodsFindings(installation),
    ...jobsFindings(installation),
    ...budgetsFindings(installation),
    ...rightsFindings(rights, identity.ok ? identity.value.user : undefined),
  ]
}

/** The schemas of the kinds in this version. Loaded only here: they are large. */
export async function ownSchemas(): Promise<Parameters<typeof kindsFindings>[1]> {
  const [sets, reports, moves, moving, jobs] = await Promise.all([
    import('../../api/schema/backuppodset.ts'),
    import('../../api/schema/node-report.ts'),
    import('../../api/schema/migration.ts'),
    import('../../api/schema/migrating-pod.ts'),
    import('../../api/schema/pod-migration-job.ts'),
  ])
  return {
    backuppodsets: sets.backupPodSetSchema() as SchemaNode,
    nodereports: reports.nodeReportSchema() as SchemaNode,
    migrations: moves.migrationSchema() as SchemaNode,
    migratingpods: moving.migratingPodSchema() as SchemaNode,
    podmigrationjobs: jobs.podMigrationJobSchema(podMigrationJobs.group) as SchemaNode,
  }
}
