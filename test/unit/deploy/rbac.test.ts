import { describe, expect, test } from 'vitest'
import { type Manifest, manifestsBelow, text } from './manifests.ts'
import {
  clonePodRights,
  jobRights,
  migratingJobRights,
  preemptionRights,
  reservationRights,
  rights,
} from './rights.ts'

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

const rolesIn = async (directory: string) =>
  (await manifestsBelow(directory)).filter(({ kind }) => kind.endsWith('Role'))
const roles = await rolesIn('deploy/operator/rbac')
const jobRoles = await rolesIn('deploy/pod-migration-jobs')
const reservationRoles = await rolesIn('deploy/job-reservations')
const migratingJobRoles = await rolesIn('deploy/migrating-jobs')
const clonePodRoles = await rolesIn('deploy/clone-pods')
const preemptionRoles = await rolesIn('deploy/job-preemptions')
const rulesOf = (role: Manifest): readonly Rule[] => role['rules'] as Rule[]
const titleOf = (role: Manifest): string => `${role.kind} ${role.metadata.name}`

function rightsOf(role: Manifest): string[] {
  return rulesOf(role).flatMap(({ apiGroups, resources, resourceNames, verbs }) =>
    apiGroups.flatMap(group =>
      resources.flatMap(resource =>
        (resourceNames ?? ['']).flatMap(name =>
          verbs.map(verb => `${group}/${resource}${name === '' ? '' : `/${name}`} ${verb}`),
        ),
      ),
    ),
  )
}

describe('rights of the operator', () => {
  const ours = roles.filter(role => role.metadata.name === 'understudy-operator')
  const forJobs = jobRoles.filter(role => role.metadata.name === 'understudy-operator-jobs')

  const forClonePods = clonePodRoles.filter(role => role.metadata.name === 'understudy-operator-clone-pods')

  test.each([
    ['itself', ours, rights],
    ['PodMigrationJobs', forJobs, jobRights],
    ['ReservationFirst', reservationRoles, reservationRights],
    ['Jobs whose pods move', migratingJobRoles, migratingJobRights],
    ['ClonePods', forClonePods, clonePodRights],
    ['preemption', preemptionRoles, preemptionRights],
  ] as const)('for %s: each role is in the table and each line of the table is a right', (_, own, table) => {
    const granted = Object.fromEntries(own.map(role => [titleOf(role), rightsOf(role).toSorted()]))
    const needed = Object.fromEntries(
      Object.entries(table).map(([title, role]) => [title, Object.keys(role).toSorted()]),
    )
    expect(granted).toEqual(needed)
  })

  test.each(
    [rights, jobRights, reservationRights, migratingJobRights, clonePodRights, preemptionRights]
      .flatMap(table => Object.values(table))
      .flatMap(role => Object.entries(role)),
  )('%s has its caller in the code', async (_, { file, code }) => {
    expect(code.test(await text(file)), `${code} in ${file}`).toBe(true)
  })
})

describe('rights of the agents', () => {
  test('D10.least: slots, pods and reports are all that they read, and no kind that owns slots', async () => {
    const [role] = (await manifestsBelow('deploy/agent')).filter(({ kind }) => kind === 'ClusterRole')
    const read = role && rightsOf(role).filter(right => /(get|list|watch)$/.test(right))
    expect(new Set(read?.map(right => right.replace(/ .*/, '')))).toEqual(
      new Set(['backup.example.com/nodereports', '/pods', 'coordination.k8s.io/leases']),
    )
  })
})

describe('all roles', () => {
  test.each(
    [...roles, ...jobRoles, ...reservationRoles, ...migratingJobRoles, ...clonePodRoles].map(
      role => [titleOf(role), role] as const,
    ),
  )('%s has no wildcard', (_, role) => {
    expect(rightsOf(role).filter(right => right.includes('*'))).toEqual([])
  })

  test('the cluster-wide role gives no way to other people or to secrets', () => {
    const dangerous = [
      'secrets',
      'serviceaccounts',
      'roles',
      'clusterroles',
      'rolebindings',
      'pods/exec',
      'nodes/proxy',
      'nodes/status',
    ]
    const granted = [...roles, ...jobRoles, ...reservationRoles]
      .filter(({ kind }) => kind === 'ClusterRole')
      .flatMap(rulesOf)
      .flatMap(({ resources }) => resources)
    expect(granted.filter(resource => dangerous.includes(resource))).toEqual([])
  })

  test('who may view may not change', () => {
    const view = roles.filter(
      ({ metadata }) => metadata.labels?.['rbac.authorization.k8s.io/aggregate-to-view'],
    )
    expect(view).toHaveLength(1)
    expect(new Set(view.flatMap(rulesOf).flatMap(({ verbs }) => verbs))).toEqual(
      new Set(['get', 'list', 'watch']),
    )
  })
})
