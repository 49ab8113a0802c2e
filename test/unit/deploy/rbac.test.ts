import { describe, expect, test } from 'vitest'
import { type Manifest, manifestsBelow, text } from './manifests.ts'

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

/**
 * Every right of the operator and the code that needs it: `group/resource verb` -> file and what to find there.
 * A right without a line here, or a line without its code, fails.
 */
const callers: Record<string, Record<string, { file: string; code: RegExp }>> = {
  'ClusterRole understudy-operator': {
    'backup.example.com/backuppodsets get': {
      file: 'src/backuppodset/act/claim.ts',
      code: /api\.get\(backupPodSets/,
    },
    'backup.example.com/backuppodsets list': { file: 'src/kube/list-all.ts', code: /api\.list\(/ },
    'backup.example.com/backuppodsets watch': { file: 'src/kube/reflector.ts', code: /api\.watch\(/ },
    'backup.example.com/backuppodsets/status update': {
      file: 'src/backuppodset/report.ts',
      code: /api\.replace\(\s*backupPodSets[^;]*subresource: 'status'/,
    },
    '/pods get': { file: 'src/backuppodset/act/create.ts', code: /api\.get\(pods/ },
    '/pods list': { file: 'src/kube/list-all.ts', code: /api\.list\(/ },
    '/pods watch': { file: 'src/kube/reflector.ts', code: /api\.watch\(/ },
    '/pods create': { file: 'src/backuppodset/act/create.ts', code: /api\.create\(pods/ },
    '/pods patch': { file: 'src/backuppodset/act/write-pod.ts', code: /[aA]pi\.patch\(\s*pods/ },
    '/pods delete': { file: 'src/backuppodset/act/write-pod.ts', code: /[aA]pi\.delete\(\s*pods/ },
    'events.k8s.io/events create': { file: 'src/kube/recorder.ts', code: /api\.create\(\s*resource/ },
    'events.k8s.io/events patch': { file: 'src/kube/recorder.ts', code: /api\.patch\(\s*resource/ },
  },
  'Role understudy-operator': {
    'coordination.k8s.io/leases create': { file: 'src/kube/election.ts', code: /api\.create\(leases/ },
    'coordination.k8s.io/leases/understudy-operator get': {
      file: 'src/kube/election.ts',
      code: /api\.get\(leases/,
    },
    'coordination.k8s.io/leases/understudy-operator update': {
      file: 'src/kube/election.ts',
      code: /api\.replace\(leases/,
    },
    '/secrets create': { file: 'src/backuppodset/wake-key.ts', code: /api\.create\(\s*secrets/ },
    '/secrets/understudy-wake-key get': {
      file: 'src/backuppodset/wake-key.ts',
      code: /api\.get\(\s*secrets/,
    },
  },
}

const roles = (await manifestsBelow('deploy/rbac')).filter(({ kind }) => kind.endsWith('Role'))
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

  test('each role is in the table and each line of the table is a right', () => {
    const granted = Object.fromEntries(ours.map(role => [titleOf(role), rightsOf(role).toSorted()]))
    const needed = Object.fromEntries(
      Object.entries(callers).map(([title, rights]) => [title, Object.keys(rights).toSorted()]),
    )
    expect(granted).toEqual(needed)
  })

  test.each(Object.values(callers).flatMap(rights => Object.entries(rights)))(
    '%s has its caller in the code',
    async (_, { file, code }) => {
      expect(code.test(await text(file)), `${code} in ${file}`).toBe(true)
    },
  )
})

describe('all roles', () => {
  test.each(roles.map(role => [titleOf(role), role] as const))('%s has no wildcard', (_, role) => {
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
      'nodes',
    ]
    const granted = roles
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
