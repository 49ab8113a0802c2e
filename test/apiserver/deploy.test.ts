import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { run } from '../../images/run.ts'
import { type ControlPlane, startControlPlane } from '../../playground/control-plane.ts'
import { manifest, project } from '../unit/deploy/manifests.ts'

// An API server of its own: what is installed here is cluster-wide and would be in the way of the other tests.
let cluster: ControlPlane
let scratch = ''
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-deploy-'))
  cluster = await startControlPlane()
  await kubectl('apply', '-k', join(project, 'deploy'))
})
afterAll(async () => {
  await cluster?.stop()
  await rm(scratch, { recursive: true, force: true })
})

const kubectl = (...args: string[]): Promise<string> =>
  run(cluster.kubectl, ['--kubeconfig', cluster.kubeconfigPath, ...args])

/** Sends a pod to the server without keeping it; resolves with its name, rejects with the server's refusal. */
async function tryPod(spec: unknown, namespace = 'understudy-system'): Promise<string> {
  const file = join(scratch, 'pod.json')
  await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'probe' }, spec }))
  return kubectl('-n', namespace, 'create', '--dry-run=server', '-o', 'name', '-f', file)
}

interface PodSpec {
  readonly containers: readonly Record<string, unknown>[]
  readonly [field: string]: unknown
}

const templateOf = async (): Promise<PodSpec> => {
  const { spec } = await manifest<{ spec: { template: { spec: PodSpec } } }>('deploy/deployment.yaml')
  return spec.template.spec
}

describe('kubectl apply -k deploy/', () => {
  test('a second time changes nothing', async () => {
    // Of each object its version, not kubectl's words: it says "configured" of any budget.
    const versions = (): Promise<string> =>
      kubectl(
        ...['get', '-k', join(project, 'deploy'), '-o'],
        'jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\\n"}{end}',
      )
    const before = await versions()
    await kubectl('apply', '-k', join(project, 'deploy'))
    expect(before.trim().split('\n').length).toBeGreaterThan(12)
    expect(await versions()).toBe(before)
  })

  test('the kind is served', async () => {
    await kubectl(
      'wait',
      '--for=condition=Established',
      '--timeout=60s',
      'crd/backuppodsets.backup.example.com',
    )
    expect(await kubectl('get', 'bps', '-A', '-o', 'name')).toBe('')
  })

  test('the policy of the gate is accepted in a namespace of a user', async () => {
    await kubectl('create', 'namespace', 'shop')
    expect(await kubectl('apply', '-n', 'shop', '-k', join(project, 'deploy/network-policy'))).toContain(
      'created',
    )
    expect(await kubectl('-n', 'shop', 'get', 'networkpolicy', '-o', 'name')).toContain('understudy-gate')
  })
})

describe('pod security', () => {
  test('the pod of the Deployment is fit for the level `restricted`, which its namespace enforces', async () => {
    expect(await tryPod(await templateOf())).toContain('pod/probe')
  })

  test.each([
    ['may become root', { allowPrivilegeEscalation: true }],
    ['keeps capabilities', { capabilities: {} }],
  ])('the same pod is refused there if it %s', async (_, change) => {
    const spec = await templateOf()
    const containers = spec.containers.map(container => ({
      ...container,
      securityContext: { ...(container['securityContext'] as object), ...change },
    }))
    await expect(tryPod({ ...spec, containers })).rejects.toThrow('violates PodSecurity "restricted')
  })
})

describe('rights', () => {
  const operator = 'system:serviceaccount:understudy-system:understudy-operator'

  /** What the server answers to "can this user do that?"; kubectl says no by its exit code. */
  const can = async (user: string, ...question: string[]): Promise<boolean> =>
    kubectl('auth', 'can-i', '--quiet', '--as', user, ...question).then(
      () => true,
      (error: Error) => {
        if (/: exit code 1\n(Warning: .*)?$/.test(error.message)) return false
        throw error
      },
    )

  test.each([
    'list backuppodsets -A',
    'watch pods -A',
    'delete pods -n shop',
    'update backuppodsets --subresource=status -n shop',
    'create events.events.k8s.io -n shop',
    'create leases -n understudy-system',
    'update leases/understudy-operator -n understudy-system',
    'get secrets/understudy-wake-key -n understudy-system',
  ])('the operator may: %s', async question => {
    expect(await can(operator, ...question.split(' '))).toBe(true)
  })

  test.each([
    'get secrets/understudy-wake-key -n shop',
    'get secrets/other -n understudy-system',
    'list secrets -n understudy-system',
    'delete secrets/understudy-wake-key -n understudy-system',
    'update leases/other -n understudy-system',
    'create leases -n shop',
    'patch backuppodsets -n shop',
    'delete backuppodsets -n shop',
    'create pods --subresource=exec -n shop',
    'get nodes',
    'create pods --subresource=eviction -n shop',
  ])('the operator may not: %s', async question => {
    expect(await can(operator, ...question.split(' '))).toBe(false)
  })

  test('view sees sets, edit changes and scales them', async () => {
    const bind = (name: string): Promise<string> =>
      kubectl(
        '-n',
        'default',
        'create',
        'rolebinding',
        name,
        `--clusterrole=understudy-${name}`,
        `--user=${name}`,
      )
    await bind('view')
    await bind('edit')
    expect(await can('view', 'get', 'backuppodsets')).toBe(true)
    expect(await can('view', 'patch', 'backuppodsets')).toBe(false)
    expect(await can('edit', 'patch', 'backuppodsets')).toBe(true)
    expect(await can('edit', 'patch', 'backuppodsets', '--subresource=scale')).toBe(true)
    expect(await can('edit', 'patch', 'backuppodsets', '--subresource=status')).toBe(false)
  })

  test('the cluster adds both to its own roles', async () => {
    const labelled = await kubectl(
      'get',
      'clusterroles',
      '-o',
      'name',
      '-l',
      ['app.kubernetes.io/part-of=understudy', 'rbac.authorization.k8s.io/aggregate-to-edit=true'].join(','),
    )
    expect(labelled.trim()).toBe('clusterrole.rbac.authorization.k8s.io/understudy-edit')
  })
})
