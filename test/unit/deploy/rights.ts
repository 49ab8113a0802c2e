// Long because it is one table of rights.
/** The reason for a right of the operator. */
export interface Caller {
  readonly file: string
  /** Must match in that file. */
  readonly code: RegExp
  /** Set if an ordinary run never reaches the code: the event that must happen first. */
  readonly only?: string
}

/**
 * Every right of the operator and the code that needs it, by role: `group/resource[/name] verb`. The unit tests compare
 * it with the roles in deploy/operator/rbac and with the code; tests with an audit log compare it with the rights used.
 */
export const rights: Readonly<Record<string, Readonly<Record<string, Caller>>>> = {
  'ClusterRole understudy-operator': {
    'backup.example.com/backuppodsets get': {
      file: 'src/backuppodset/act/claim.ts',
      code: /api\.get\(backupPodSets/,
      only: 'an orphaned pod is adopted',
    },
    'backup.example.com/backuppodsets list': {
      file: 'src/kube/list-all.ts',
      code: /api\.list\(/,
      only: 'the server cannot stream the initial list',
    },
    'backup.example.com/backuppodsets watch': { file: 'src/kube/reflector.ts', code: /api\.watch\(/ },
    'backup.example.com/backuppodsets create': {
      file: 'src/migratingpod/controller.ts',
      code: /api\.create\(backupPodSets/,
      only: 'there is a MigratingPod',
    },
    'backup.example.com/backuppodsets update': {
      file: 'src/migratingpod/controller.ts',
      code: /api\.replace\(backupPodSets/,
      only: 'a MigratingPod has changed, or somebody has changed its set',
    },
    'backup.example.com/migratingpods list': {
      file: 'src/kube/list-all.ts',
      code: /api\.list\(/,
      only: 'the server cannot stream the initial list',
    },
    'backup.example.com/migratingpods watch': { file: 'src/kube/reflector.ts', code: /api\.watch\(/ },
    'backup.example.com/migratingpods/status update': {
      file: 'src/migratingpod/controller.ts',
      code: /\.replace\(migratingPods/,
      only: 'there is a MigratingPod',
    },
    'backup.example.com/backuppodsets/status update': {
      file: 'src/backuppodset/report.ts',
      code: /\.replace\(\s*backupPodSets[^;]*subresource: 'status'/,
    },
    'backup.example.com/migrations list': {
      file: 'src/kube/list-all.ts',
      code: /api\.list\(/,
      only: 'the server cannot stream the initial list',
    },
    'backup.example.com/migrations watch': { file: 'src/kube/reflector.ts', code: /api\.watch\(/ },
    'backup.example.com/migrations create': {
      file: 'src/drain/controller.ts',
      code: /api\.create\(migrationResource/,
      only: 'a node with primaries is drained',
    },
    'backup.example.com/migrations delete': {
      file: 'src/migration/controller.ts',
      code: /api\.delete\(\s*migrationResource/,
      only: 'a Migration has ended',
    },
    'backup.example.com/migrations/status patch': {
      file: 'src/migration/controller.ts',
      code: /api\.patch\(\s*migrationResource/,
      only: 'a pod is to move',
    },
    '/pods get': {
      file: 'src/backuppodset/act/create.ts',
      code: /api\.get\(pods/,
      only: 'the answer to a create is lost or says that the name exists',
    },
    '/pods list': {
      file: 'src/kube/list-all.ts',
      code: /api\.list\(/,
      only: 'the server cannot stream the initial list',
    },
    '/pods watch': { file: 'src/kube/reflector.ts', code: /api\.watch\(/ },
    '/pods create': { file: 'src/backuppodset/act/create.ts', code: /api\.create\(pods/ },
    '/pods patch': { file: 'src/slot/act/write-pod.ts', code: /[aA]pi\.patch\(\s*pods/ },
    '/pods delete': { file: 'src/slot/act/write-pod.ts', code: /[aA]pi\.delete\(\s*pods/ },
    '/persistentvolumeclaims get': {
      file: 'src/backuppodset/memory/claim-reader.ts',
      code: /api\.get\(\s*persistentVolumeClaims/,
      only: 'the template of a set that keeps memory names a claim',
    },
    'backup.example.com/nodereports get': {
      file: 'src/slot/act/read-report.ts',
      code: /api\.get\(nodeReports/,
      only: 'a life is to end, or a slot to be handed over',
    },
    'backup.example.com/nodereports list': {
      file: 'src/kube/list-all.ts',
      code: /api\.list\(/,
      only: 'the server cannot stream the initial list',
    },
    'backup.example.com/nodereports watch': { file: 'src/kube/reflector.ts', code: /api\.watch\(/ },
    'backup.example.com/nodereports patch': {
      file: 'src/slot/act/state-silence.ts',
      code: /urgentApi\.patch\(nodeReports/,
      only: 'the node of a primary is silent',
    },
    '/namespaces get': {
      file: 'src/backuppodset/memory/permission.ts',
      code: /api\.get\(namespaces,/,
      only: 'a set asks for memory where it is not allowed',
    },
    '/namespaces list': {
      file: 'src/kube/list-all.ts',
      code: /api\.list\(/,
      only: 'the server cannot stream the initial list',
    },
    '/namespaces watch': { file: 'src/kube/reflector.ts', code: /api\.watch\(/ },
    '/nodes list': {
      file: 'src/kube/list-all.ts',
      code: /api\.list\(/,
      only: 'the server cannot stream the initial list',
    },
    '/nodes watch': { file: 'src/kube/reflector.ts', code: /api\.watch\(/ },
    '/nodes patch': { file: 'src/operator/stage-label.ts', code: /api\.patch\(nodeResource/ },
    'coordination.k8s.io/leases get': {
      file: 'src/slot/act/write-lease.ts',
      code: /urgentApi\.get\(leases/,
      only: 'the Lease of a slot was made unreadable by hand',
    },
    'coordination.k8s.io/leases list': {
      file: 'src/kube/list-all.ts',
      code: /api\.list\(/,
      only: 'the server cannot stream the initial list',
    },
    'coordination.k8s.io/leases watch': { file: 'src/kube/reflector.ts', code: /api\.watch\(/ },
    'coordination.k8s.io/leases create': {
      file: 'src/slot/act/write-lease.ts',
      code: /urgentApi\.create\(leases/,
      only: 'a set keeps memory',
    },
    'coordination.k8s.io/leases patch': {
      file: 'src/slot/act/write-lease.ts',
      code: /urgentApi\.patch\(\s*leases/,
      only: 'a set keeps memory',
    },
    'coordination.k8s.io/leases delete': {
      file: 'src/slot/act/write-lease.ts',
      code: /urgentApi\.delete\(leases/,
      only: 'a set keeps memory',
    },
    'apps/controllerrevisions list': {
      file: 'src/kube/list-all.ts',
      code: /api\.list\(/,
      only: 'the server cannot stream the initial list',
    },
    'apps/controllerrevisions watch': { file: 'src/kube/reflector.ts', code: /api\.watch\(/ },
    'apps/controllerrevisions create': {
      file: 'src/backuppodset/revisions/write.ts',
      code: /api\.create\(controllerRevisions/,
      only: 'a set keeps memory',
    },
    'apps/controllerrevisions delete': {
      file: 'src/backuppodset/revisions/write.ts',
      code: /api\.delete\(\s*controllerRevisions/,
      only: 'a set that keeps memory has changed its template',
    },
    '/services list': {
      file: 'src/kube/list-all.ts',
      code: /api\.list\(/,
      only: 'the server cannot stream the initial list',
    },
    '/services watch': { file: 'src/kube/reflector.ts', code: /api\.watch\(/ },
    '/services create': {
      file: 'src/slot/endpoints/write.ts',
      code: /urgentApi\.create\(services/,
      only: 'a set has a service',
    },
    '/services patch': {
      file: 'src/slot/endpoints/write.ts',
      code: /urgentApi\.patch\(\s*services/,
      only: 'a set has a service',
    },
    '/services delete': {
      file: 'src/slot/endpoints/write.ts',
      code: /urgentApi\.delete\(services/,
      only: 'a set has a service',
    },
    'discovery.k8s.io/endpointslices get': {
      file: 'src/slot/endpoints/write.ts',
      code: /urgentApi\.get\(endpointSlices/,
      only: 'two slots of one Service are switched at the same time',
    },
    'discovery.k8s.io/endpointslices list': {
      file: 'src/kube/list-all.ts',
      code: /api\.list\(/,
      only: 'the server cannot stream the initial list',
    },
    'discovery.k8s.io/endpointslices watch': { file: 'src/kube/reflector.ts', code: /api\.watch\(/ },
    'discovery.k8s.io/endpointslices create': {
      file: 'src/slot/endpoints/write.ts',
      code: /urgentApi\.create\(endpointSlices/,
      only: 'a set has a service',
    },
    'discovery.k8s.io/endpointslices update': {
      file: 'src/slot/endpoints/write.ts',
      code: /urgentApi\.replace\(\s*endpointSlices/,
      only: 'a set has a service',
    },
    'discovery.k8s.io/endpointslices delete': {
      file: 'src/slot/endpoints/write.ts',
      code: /urgentApi\.delete\(endpointSlices/,
      only: 'a set has a service',
    },
    'policy/poddisruptionbudgets list': {
      file: 'src/kube/list-all.ts',
      code: /api\.list\(/,
      only: 'the server cannot stream the initial list',
    },
    'policy/poddisruptionbudgets watch': { file: 'src/kube/reflector.ts', code: /api\.watch\(/ },
    'policy/poddisruptionbudgets create': {
      file: 'src/drain/budget-controller.ts',
      code: /api\.create\(podDisruptionBudgets/,
      only: 'a set keeps memory',
    },
    'policy/poddisruptionbudgets update': {
      file: 'src/drain/budget-controller.ts',
      code: /api\.replace\(\s*podDisruptionBudgets/,
      only: 'a client has changed the budget of a set',
    },
    'policy/poddisruptionbudgets delete': {
      file: 'src/drain/budget-controller.ts',
      code: /api\.delete\(\s*podDisruptionBudgets/,
      only: 'a set that kept memory does not any more',
    },
    'events.k8s.io/events create': { file: 'src/kube/recorder.ts', code: /api\.create\(\s*resource/ },
    'events.k8s.io/events patch': {
      file: 'src/kube/recorder.ts',
      code: /api\.patch\(\s*resource/,
      only: 'the same event happens again',
    },
  },
  'Role understudy-operator': {
    'coordination.k8s.io/leases create': { file: 'src/kube/lease-record.ts', code: /api\.create\(leases/ },
    'coordination.k8s.io/leases/understudy-operator get': {
      file: 'src/kube/lease-record.ts',
      code: /api\.get\(leases/,
    },
    'coordination.k8s.io/leases/understudy-operator update': {
      file: 'src/kube/lease-record.ts',
      code: /api\.replace\(leases/,
    },
    '/secrets create': { file: 'src/slot/gate/wake-key.ts', code: /api\.create\(\s*secrets/ },
    '/secrets/understudy-wake-key get': {
      file: 'src/slot/gate/wake-key.ts',
      code: /api\.get\(\s*secrets/,
    },
  },
}

const mirrored = (resource: string): Readonly<Record<string, Caller>> => ({
  [`${resource} list`]: {
    file: 'src/kube/list-all.ts',
    code: /api\.list\(/,
    only: 'the server cannot stream the initial list',
  },
  [`${resource} watch`]: { file: 'src/kube/reflector.ts', code: /api\.watch\(/ },
})

const ofJobs = (group: string): Readonly<Record<string, Caller>> => ({
  ...mirrored(`${group}/podmigrationjobs`),
  [`${group}/podmigrationjobs get`]: {
    file: 'src/podmigrationjob/act/write-status.ts',
    code: /api\.get\(resource/,
    only: 'the answer to a write is lost',
  },
  [`${group}/podmigrationjobs delete`]: {
    file: 'src/podmigrationjob/controller.ts',
    code: /api\.delete\(resource/,
    only: 'a job has ended long ago',
  },
  [`${group}/podmigrationjobs/status patch`]: {
    file: 'src/podmigrationjob/act/write-status.ts',
    code: /api\.patch\(\s*resource/,
  },
})

const ofReservations = (group: string): Readonly<Record<string, Caller>> => ({
  ...mirrored(`${group}/reservations`),
  [`${group}/reservations/status patch`]: {
    file: 'src/podmigrationjob/act/reservation.ts',
    code: /api\.patch\(resource/,
  },
})

/** The same for the rights in deploy/pod-migration-jobs, which the operator has only with that component. */
export const jobRights: Readonly<Record<string, Readonly<Record<string, Caller>>>> = {
  'ClusterRole understudy-operator-jobs': {
    ...ofJobs('backup.example.com'),
    ...ofJobs('scheduling.koordinator.sh'),
    ...ofReservations('backup.example.com'),
    ...ofReservations('scheduling.koordinator.sh'),
    ...Object.fromEntries(
      ['podmigrationjobs', 'reservations'].map(plural => [
        `apiextensions.k8s.io/customresourcedefinitions/${plural}.scheduling.koordinator.sh get`,
        { file: 'src/podmigrationjob/observe/koordinator.ts', code: /\.get\(customResourceDefinitions/ },
      ]),
    ),
    '/pods/eviction create': {
      file: 'src/podmigrationjob/act/evict.ts',
      code: /subresource: 'eviction'/,
    },
    'backup.example.com/migrations create': {
      file: 'src/podmigrationjob/act/perform.ts',
      code: /\.create\(migrations/,
    },
    ...mirrored('apps/deployments'),
    ...mirrored('apps/replicasets'),
    ...mirrored('apps/statefulsets'),
    ...mirrored('policy/poddisruptionbudgets'),
  },
  'Role understudy-operator-jobs': {
    ...mirrored('/configmaps/understudy-migration-controller'),
  },
}

/** The same for the rights in deploy/migrating-jobs. */
export const migratingJobRights: typeof jobRights = {
  'ClusterRole understudy-operator-migrating-jobs': {
    ...mirrored('batch/jobs'),
    'batch/jobs/status update': { file: 'src/migratingjob/controller.ts', code: /\.replace\(jobs/ },
    'backup.example.com/migratingpods create': {
      file: 'src/migratingjob/controller.ts',
      code: /api\.create\(migratingPods/,
    },
    'backup.example.com/migratingpods update': {
      file: 'src/migratingjob/controller.ts',
      code: /api\.replace\(migratingPods/,
    },
    'backup.example.com/migratingpods delete': {
      file: 'src/migratingjob/controller.ts',
      code: /\.delete\(migratingPods/,
    },
  },
}

/** The same for the rights in deploy/clone-pods. */
export const clonePodRights: typeof jobRights = {
  'ClusterRole understudy-operator-clone-pods': {
    ...mirrored('backup.example.com/clonepods'),
    'backup.example.com/clonepods delete': {
      file: 'src/clonepod/controller.ts',
      code: /api\.delete\(\s*clonePods/,
    },
    'backup.example.com/clonepods/status update': {
      file: 'src/clonepod/controller.ts',
      code: /\.replace\(clonePods/,
    },
    'backup.example.com/migratingpods create': {
      file: 'src/clonepod/controller.ts',
      code: /api\.create\(migratingPods/,
    },
    'backup.example.com/migratingpods update': {
      file: 'src/clonepod/controller.ts',
      code: /api\.replace\(migratingPods/,
    },
    'backup.example.com/migratingpods delete': {
      file: 'src/clonepod/controller.ts',
      code: /api\.delete\(migratingPods/,
    },
  },
}

/** The same for the right in deploy/job-reservations. */
export const reservationRights: typeof jobRights = {
  'ClusterRole understudy-operator-reservations': {
    'backup.example.com/reservations create': {
      file: 'src/podmigrationjob/act/reserve.ts',
      code: /api\.create\(reservations/,
    },
    'backup.example.com/reservations delete': {
      file: 'src/podmigrationjob/act/reserve.ts',
      code: /api\.delete\(resource/,
    },
    ...Object.fromEntries(
      ['backup.example.com', 'scheduling.koordinator.sh'].map(group => [
        `${group}/podmigrationjobs patch`,
        { file: 'src/podmigrationjob/act/reserve.ts', code: /api\.patch\(resource/ },
      ]),
    ),
    'apps/replicasets get': { file: 'src/podmigrationjob/act/reserve.ts', code: /\.get\(replicaSets/ },
    '/pods/status patch': { file: 'src/podmigrationjob/act/preempt.ts', code: /nominatedNodeName/ },
  },
}

/** The same for the right in deploy/job-preemptions. */
export const preemptionRights: typeof jobRights = {
  'ClusterRole understudy-operator-preemptions': {
    'backup.example.com/podmigrationjobs create': {
      file: 'src/podmigrationjob/act/preempt.ts',
      code: /api\.create\(podMigrationJobs/,
    },
  },
}
