/** `npm run generate` writes the CRDs; with `--check` it fails when the committed ones differ from its output. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { stringify } from 'yaml'
import { backupPodSets } from '../src/api/backuppodset.ts'
import { clonePods } from '../src/api/clone-pod.ts'
import { migratingPods } from '../src/api/migrating-pod.ts'
import { migrations } from '../src/api/migration.ts'
import { nodeReports } from '../src/api/node-report.ts'
import {
  koordinatorJobs,
  koordinatorMark,
  type PodMigrationJob,
  podMigrationJobs,
} from '../src/api/pod-migration-job.ts'
import { koordinatorReservations, type Reservation, reservations } from '../src/api/reservation.ts'
import { backupPodSetSchema } from '../src/api/schema/backuppodset.ts'
import type { Schema } from '../src/api/schema/build.ts'
import { clonePodSchema } from '../src/api/schema/clone-pod.ts'
import { migratingPodSchema } from '../src/api/schema/migrating-pod.ts'
import { migrationSchema } from '../src/api/schema/migration.ts'
import { nodeReportSchema } from '../src/api/schema/node-report.ts'
import { podMigrationJobSchema } from '../src/api/schema/pod-migration-job.ts'
import { reservationSchema } from '../src/api/schema/reservation.ts'
import type { KubeObject } from '../src/kube/object.ts'
import type { Resource } from '../src/kube/resources.ts'

const column = (name: string, jsonPath: string, more: object = {}) => ({
  name,
  type: 'string',
  jsonPath,
  ...more,
})
const age = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }

interface Parts {
  readonly scope: 'Namespaced' | 'Cluster'
  /** Beside kind and plural. */
  readonly names: { readonly singular: string; readonly [key: string]: unknown }
  readonly columns: readonly object[]
  readonly subresources: object
  /** For `--field-selector`, beside name and namespace. */
  readonly selectable?: readonly string[]
  readonly schema: Schema
  readonly labels?: Readonly<Record<string, string>>
}

const crdOf = (
  { group, version, plural, kind }: Resource<KubeObject>,
  { scope, names, columns, subresources, selectable, schema, labels }: Parts,
) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}`, ...(labels && { labels }) },
  spec: {
    group,
    scope,
    names: { kind, listKind: `${kind}List`, plural, ...names },
    versions: [
      {
        name: version,
        served: true,
        storage: true,
        additionalPrinterColumns: columns,
        subresources,
        ...(selectable && { selectableFields: selectable.map(jsonPath => ({ jsonPath })) }),
        schema: { openAPIV3Schema: schema },
      },
    ],
  },
})

export const backupPodSetCrd = () =>
  crdOf(backupPodSets, {
    scope: 'Namespaced',
    names: {
      singular: 'backuppodset',
      shortNames: ['bps'],
      categories: ['all'],
    },
    columns: [
      column('Namespace', '.metadata.namespace'),
      column('Replicas', '.status.summary.replicas'),
      column('Hotbackups', '.status.summary.hotbackups'),
      column('Coldbackups', '.status.summary.coldbackups'),
      age,
      // Behind the columns of the paper, which count pods that exist.
      column('Ready', '.status.summary.ready'),
      column('Backups', '.status.summary.readyBackups'),
      column('Protection', '.status.summary.protection'),
      column('Available', '.status.conditions[?(@.type=="Available")].status', { priority: 1 }),
      column('Reason', '.status.conditions[?(@.type=="Ready")].reason', { priority: 1 }),
      column('Suspended', '.status.conditions[?(@.type=="Suspended")].status', { priority: 1 }),
    ],
    subresources: {
      status: {},
      scale: {
        specReplicasPath: '.spec.replicas',
        statusReplicasPath: '.status.replicas',
        labelSelectorPath: '.status.selector',
      },
    },
    selectable: ['.spec.paused', '.spec.suspend', '.status.summary.protection'],
    schema: backupPodSetSchema(),
  })

export const nodeReportCrd = () =>
  crdOf(nodeReports, {
    scope: 'Cluster',
    names: { singular: 'nodereport' },
    columns: [
      column('Ready', '.status.ready', { type: 'boolean' }),
      column('CRIU', '.status.criu'),
      column('Slots', '.status.slotCount', { type: 'integer' }),
      age,
      column('Updated', '.status.updatedAt', { type: 'date', priority: 1 }),
      column('Kernel', '.status.kernel', { priority: 1 }),
      column('Agent', '.status.version', { priority: 1 }),
    ],
    subresources: { status: {} },
    selectable: ['.status.ready'],
    schema: nodeReportSchema(),
  })

export const migrationCrd = () =>
  crdOf(migrations, {
    scope: 'Namespaced',
    names: { singular: 'migration', categories: ['all'] },
    columns: [
      column('Source', '.spec.source.name'),
      column('From', '.status.source.node'),
      column('To', '.status.target.node'),
      column('Phase', '.status.phase'),
      column('Downtime', '.status.downtimeMilliseconds', { type: 'integer' }),
      age,
      column('Reason', '.status.conditions[?(@.type=="Succeeded")].reason', { priority: 1 }),
      column('Target', '.status.target.name', { priority: 1 }),
    ],
    subresources: { status: {} },
    selectable: ['.spec.source.name', '.status.phase', '.status.source.node', '.status.target.node'],
    schema: migrationSchema(),
  })

export const clonePodCrd = () =>
  crdOf(clonePods, {
    scope: 'Namespaced',
    names: { singular: 'clonepod', categories: ['all'] },
    columns: [
      column('Source', '.spec.source.name'),
      column('Phase', '.status.phase'),
      column('Pod', '.status.target.pod'),
      column('Node', '.status.target.node'),
      age,
      column('Reason', '.status.conditions[?(@.type=="Succeeded")].reason', { priority: 1 }),
      column('Target', '.status.target.name', { priority: 1 }),
    ],
    subresources: { status: {} },
    selectable: ['.spec.source.name', '.status.phase', '.status.target.node'],
    schema: clonePodSchema(),
  })

/** Our definitions of Koordinator's kinds. */
const marked = ({ group }: Resource<KubeObject>): Pick<Parts, 'labels'> =>
  group === koordinatorJobs.group ? { labels: { [koordinatorMark.label]: koordinatorMark.value } } : {}

export const podMigrationJobCrd = (resource: Resource<PodMigrationJob>) =>
  crdOf(resource, {
    scope: 'Cluster',
    // Koordinator's short name, so that its users find the kind.
    names: { singular: 'podmigrationjob', shortNames: ['pmj'], categories: ['all'] },
    columns: [
      column('Phase', '.status.phase'),
      column('Status', '.status.status'),
      age,
      column('Node', '.status.nodeName'),
      column('Reason', '.status.reason'),
      column('PodNamespace', '.spec.podRef.namespace'),
      column('Pod', '.spec.podRef.name'),
      column('NewPod', '.status.podRef.name'),
      column('Reservation', '.spec.reservationOptions.reservationRef.name', { priority: 1 }),
      column('TTL', '.spec.ttl', { priority: 1 }),
      column('Mode', '.spec.mode', { priority: 1 }),
    ],
    subresources: { status: {} },
    selectable: ['.spec.podRef.namespace', '.spec.podRef.name', '.status.phase', '.status.nodeName'],
    schema: podMigrationJobSchema(resource.group),
    ...marked(resource),
  })

export const reservationCrd = (resource: Resource<Reservation>) =>
  crdOf(resource, {
    scope: 'Cluster',
    names: { singular: 'reservation', categories: ['all'] },
    columns: [
      column('Phase', '.status.phase'),
      age,
      column('Node', '.status.nodeName'),
      column('TTL', '.spec.ttl'),
      column('Expires', '.spec.expires'),
      column('Reason', '.status.conditions[?(@.type=="Ready")].reason', { priority: 1 }),
    ],
    subresources: { status: {} },
    schema: reservationSchema(resource.group),
    ...marked(resource),
  })

export const migratingPodCrd = () =>
  crdOf(migratingPods, {
    scope: 'Namespaced',
    names: { singular: 'migratingpod', shortNames: ['mpod'], categories: ['all'] },
    columns: [
      column('State', '.status.state'),
      column('Pod', '.status.activePod'),
      column('Node', '.status.node'),
      column('Ready', '.status.conditions[?(@.type=="Ready")].status'),
      age,
      column('Saved', '.status.savedAt', { type: 'date', priority: 1 }),
      column('Reason', '.status.conditions[?(@.type=="Ready")].reason', { priority: 1 }),
      column('Migration', '.status.migration', { priority: 1 }),
    ],
    subresources: { status: {} },
    selectable: ['.spec.suspend', '.status.state', '.status.node'],
    schema: migratingPodSchema(),
  })

const headerOf = (sources: string) => `# Made by \`npm run generate\` from ${sources}.\n`

const yaml = (header: string, crd: object): string =>
  header + stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false })

/** Each committed file and the text that it should have. */
export const crdFiles: readonly { readonly file: URL; readonly yaml: () => string }[] = [
  {
    file: new URL('backup.example.com_backuppodsets.yaml', import.meta.url),
    yaml: () => yaml(headerOf('src/api/schema/ and crds/pod-template.schema.json'), backupPodSetCrd()),
  },
  {
    file: new URL('backup.example.com_nodereports.yaml', import.meta.url),
    yaml: () => yaml(headerOf('src/api/schema/'), nodeReportCrd()),
  },
  {
    file: new URL('backup.example.com_migrations.yaml', import.meta.url),
    yaml: () => yaml(headerOf('src/api/schema/'), migrationCrd()),
  },
  {
    file: new URL('clone-pods/backup.example.com_clonepods.yaml', import.meta.url),
    yaml: () => yaml(headerOf('src/api/schema/'), clonePodCrd()),
  },
  {
    file: new URL('pod-migration-jobs/backup.example.com_podmigrationjobs.yaml', import.meta.url),
    yaml: () => yaml(headerOf('src/api/schema/'), podMigrationJobCrd(podMigrationJobs)),
  },
  {
    file: new URL('koordinator/scheduling.koordinator.sh_podmigrationjobs.yaml', import.meta.url),
    yaml: () => yaml(headerOf('src/api/schema/'), podMigrationJobCrd(koordinatorJobs)),
  },
  {
    file: new URL('pod-migration-jobs/backup.example.com_reservations.yaml', import.meta.url),
    yaml: () => yaml(headerOf('src/api/schema/'), reservationCrd(reservations)),
  },
  {
    file: new URL('koordinator/scheduling.koordinator.sh_reservations.yaml', import.meta.url),
    yaml: () => yaml(headerOf('src/api/schema/'), reservationCrd(koordinatorReservations)),
  },
  {
    file: new URL('backup.example.com_migratingpods.yaml', import.meta.url),
    yaml: () => yaml(headerOf('src/api/schema/ and crds/pod-template.schema.json'), migratingPodCrd()),
  },
]

if (import.meta.main) {
  const onlyCheck = process.argv.includes('--check')
  for (const { file, yaml } of crdFiles) {
    if (!onlyCheck) writeFileSync(file, yaml())
    else if (!existsSync(file) || readFileSync(file, 'utf8') !== yaml()) {
      console.error(`${file.pathname} is stale: run \`npm run generate\` and commit the result`)
      process.exitCode = 1
    }
  }
}
