// Long because every case needs the same installation.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { run } from '../../build/run.ts'
import { type ControlPlane, startControlPlane } from '../../playground/control-plane.ts'
import { manifest, project } from '../unit/deploy/manifests.ts'

// Own API server: these objects are cluster-wide and would disturb the other tests.
let cluster: ControlPlane
let scratch = ''
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-deploy-'))
  cluster = await startControlPlane()
  await kubectl('apply', '-k', join(project, 'deploy'))
  // The server serves a new kind only a moment after it has accepted it.
  await vi.waitFor(() => kubectl('get', 'bps', '-A'), { interval: 100 })
})
afterAll(async () => {
  await cluster?.stop()
  await rm(scratch, { recursive: true, force: true })
})

const kubectl = (...args: string[]): Promise<string> =>
  run(cluster.kubectl, ['--kubeconfig', cluster.kubeconfigPath, ...args])

/** Sends a pod to the server without storing it. Resolves with its name; rejects with the server's refusal. */
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
  const { spec } = await manifest<{ spec: { template: { spec: PodSpec } } }>(
    'deploy/operator/deployment.yaml',
  )
  return spec.template.spec
}

describe('kubectl apply -k deploy/', () => {
  test('a second time changes nothing', async () => {
    // Compares versions, not kubectl's messages: it prints "configured" for any budget.
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

  const kustomize = async (directory: string): Promise<Map<string, string>> => {
    const documents = parseAllDocuments(await run(cluster.kubectl, ['kustomize', directory]))
    return new Map(
      documents.map(document => {
        const { kind, metadata } = document.toJS() as { kind: string; metadata: { name: string } }
        return [`${kind} ${metadata.name}`, document.toString()]
      }),
    )
  }

  test('D10.variants: each variant has all of it', async () => {
    const whole = await kustomize(join(project, 'deploy'))
    expect([...whole.keys()].filter(each => each.startsWith('ValidatingAdmissionPolicy '))).toHaveLength(17)
    const redis = await kustomize(join(project, 'deploy/redis'))
    expect([...whole.keys()].filter(each => !redis.has(each))).toEqual([])
  })

  test('D10.everywhere: one component allows memory in all namespaces, and takes nothing else away', async () => {
    const whole = await kustomize(join(project, 'deploy'))
    const overlay = join(project, 'deploy/.everywhere-test')
    await mkdir(overlay, { recursive: true })
    try {
      const content = 'resources: [../base]\ncomponents: [../memory-everywhere]\n'
      await writeFile(join(overlay, 'kustomization.yaml'), content)
      const open = await kustomize(overlay)
      expect([...whole.keys()].filter(each => !open.has(each))).toEqual([
        'ValidatingAdmissionPolicy understudy-memory',
        'ValidatingAdmissionPolicyBinding understudy-memory',
      ])
      expect(open.get('Deployment understudy-operator')).toContain('--memory-namespaces=all')
    } finally {
      await rm(overlay, { recursive: true })
    }
  })

  test('D19.class: the class of the agents is a choice: a quota for the class of the system, or one of their own', async () => {
    const whole = await kustomize(join(project, 'deploy'))
    const overlay = join(project, 'deploy/.class-test')
    const built = async (component: string) => {
      const content = `resources: [../base]\ncomponents: [../${component}]\n`
      await writeFile(join(overlay, 'kustomization.yaml'), content)
      await kubectl('apply', '--dry-run=server', '-k', overlay)
      const objects = await kustomize(overlay)
      expect([...whole.keys()].filter(each => !objects.has(each))).toEqual([])
      return objects
    }
    await mkdir(overlay, { recursive: true })
    try {
      const quota = await built('critical-pods-quota')
      expect(quota.get('ResourceQuota critical-pods')).toContain('namespace: understudy-agents')
      expect(quota.get('DaemonSet understudy-agent')).toBe(whole.get('DaemonSet understudy-agent'))
      const own = await built('own-priority-class')
      expect(own.get('DaemonSet understudy-agent')).toContain('priorityClassName: understudy-agent')
      expect(own.get('PriorityClass understudy-agent')).toContain('value: 1000000000')
    } finally {
      await rm(overlay, { recursive: true })
    }
  })

  test('the policy of the gate is accepted in a namespace of a user', async () => {
    await kubectl('create', 'namespace', 'shop')
    expect(await kubectl('apply', '-n', 'shop', '-k', join(project, 'deploy/network-policy'))).toContain(
      'created',
    )
    expect(await kubectl('-n', 'shop', 'get', 'networkpolicy', '-o', 'name')).toContain('understudy-gate')
  })
})

describe('flow schemas', () => {
  const operator = 'system:serviceaccount:understudy-system:understudy-operator'
  /**
   * Returns the FlowSchema by which the API server classifies this read; the server reports it even if the account may
   * not read.
   */
  async function flowOf(account: string, path: string): Promise<string> {
    const args = ['--kubeconfig', cluster.kubeconfigPath, '--as', account, '-v=8', 'get', '--raw', path]
    const said = await promisify(execFile)(cluster.kubectl, args, { maxBuffer: 2 ** 26 }).catch(
      (error: { stderr: string }) => error,
    )
    const uid = /x-kubernetes-pf-flowschema-uid: "?([0-9a-f-]{36})/i.exec(said.stderr)?.[1]
    const names = await kubectl(
      ...[
        'get',
        'flowschemas',
        '-o',
        'jsonpath={range .items[*]}{.metadata.uid} {.metadata.name}{"\\n"}{end}',
      ],
    )
    return (
      names
        .split('\n')
        .find(line => line.startsWith(`${uid} `))
        ?.split(' ')[1] ?? `none: ${uid}`
    )
  }
  const lease = (namespace: string, name = '') =>
    `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`

  test.each([
    [
      'its leadership before everything else',
      operator,
      lease('understudy-system', 'understudy-operator'),
      'understudy-leader-election',
    ],
    ['pods of sets with controllers', operator, '/api/v1/namespaces/default/pods', 'understudy-operator'],
    ['Leases of slots, too', operator, lease('default'), 'understudy-operator'],
    ['what belongs to no namespace', operator, '/api/v1/nodes', 'understudy-operator'],
    [
      'and nobody else',
      'system:serviceaccount:understudy-system:default',
      '/api/v1/nodes',
      'service-accounts',
    ],
  ])('R15: the API server takes of the operator %s', async (_, account, path, schema) => {
    // The API server applies new FlowSchemas a moment after it has accepted them.
    await vi.waitFor(async () => expect(await flowOf(account, path)).toBe(schema), {
      interval: 500,
    })
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

  /** Returns the server's answer to "can this user do that?"; kubectl reports "no" by its exit code. */
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
    'create secrets -n understudy-agents',
  ])('the operator may: %s', async question => {
    expect(await can(operator, ...question.split(' '))).toBe(true)
  })

  test.each([
    'get secrets/understudy-wake-key -n shop',
    'get secrets/understudy-generations-key -n understudy-agents',
    'get secrets/other -n understudy-system',
    'list secrets -n understudy-system',
    'delete secrets/understudy-wake-key -n understudy-system',
    'update leases/other -n understudy-system',
    'update leases -n shop',
    'patch backuppodsets -n shop',
    'delete backuppodsets -n shop',
    'create pods --subresource=exec -n shop',
    'get nodes',
    'create pods --subresource=eviction -n shop',
  ])('the operator may not: %s', async question => {
    expect(await can(operator, ...question.split(' '))).toBe(false)
  })

  test('an agent may read its key, and no other Secret', async () => {
    const agent = 'system:serviceaccount:understudy-agents:understudy-agent'
    expect(await can(agent, 'get', 'secrets/understudy-generations-key', '-n', 'understudy-agents')).toBe(
      true,
    )
    for (const question of [
      'get secrets/understudy-generations-key -n shop',
      'get secrets/other -n understudy-agents',
      'list secrets -n understudy-agents',
      'create secrets -n understudy-agents',
      'get secrets/understudy-wake-key -n understudy-system',
    ])
      expect(await can(agent, ...question.split(' ')), question).toBe(false)
  })

  test('D10.least: an agent may read slots, pods and reports, and no sets', async () => {
    const agent = 'system:serviceaccount:understudy-agents:understudy-agent'
    for (const verb of ['get', 'list', 'watch']) {
      expect(await can(agent, verb, 'backuppodsets', '-A'), verb).toBe(false)
      expect(await can(agent, verb, 'leases.coordination.k8s.io', '-A'), verb).toBe(true)
    }
    expect(await can(agent, 'list', 'nodereports')).toBe(true)
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

  test('the cluster adds the first to its own role, and no editor has the second unasked', async () => {
    const added = (role: string) =>
      kubectl(
        ...['get', 'clusterroles', '-o', 'name', '-l'],
        `app.kubernetes.io/part-of=understudy,rbac.authorization.k8s.io/aggregate-to-${role}=true`,
      )
    expect((await added('view')).trim()).toBe('clusterrole.rbac.authorization.k8s.io/understudy-view')
    expect(await added('edit')).toBe('')
    expect(await added('admin')).toBe('')
  })
})

describe('the operator with these rights', () => {
  interface AuditEvent {
    readonly stage: string
    readonly verb: string
    readonly user: { readonly username: string }
    readonly objectRef?: {
      readonly apiGroup?: string
      readonly resource: string
      readonly subresource?: string
    }
    readonly responseStatus?: { readonly code: number }
    readonly requestURI: string
  }

  /** Returns the user's completed requests so far. */
  async function requestsOf(user: string): Promise<AuditEvent[]> {
    const lines = (await readFile(cluster.auditLogPath, 'utf8')).trim().split('\n')
    return lines
      .map(line => JSON.parse(line) as AuditEvent)
      .filter(event => event.user.username === user && event.stage === 'ResponseComplete')
  }

  const right = ({ verb, objectRef }: AuditEvent): string =>
    [verb, objectRef?.resource, objectRef?.subresource].filter(Boolean).join(' ')

  test('makes and removes the pods of a set, and is never refused', async () => {
    const user = 'system:serviceaccount:understudy-system:understudy-operator'
    const kubeconfig = await cluster.kubeconfigFor(user, ['system:serviceaccounts'])
    const child = spawn(
      process.execPath,
      [
        ...[join(project, 'src/main.ts'), 'operator', '--kubeconfig', kubeconfig, '--log-level', 'info'],
        ...['--health-port', '0', '--metrics-port', '0'],
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    )
    const exited = once(child, 'exit')
    let log = ''
    child.stdout.on('data', (chunk: Buffer) => {
      log += chunk.toString()
    })
    child.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString()
    })
    try {
      const file = join(scratch, 'set.json')
      const set = {
        apiVersion: 'backup.example.com/v1alpha1',
        kind: 'BackupPodSet',
        metadata: { name: 'web', namespace: 'default' },
        spec: {
          replicas: 2,
          hotBackups: 1,
          coldBackups: 1,
          template: { spec: { containers: [{ name: 'web', image: 'nginx:1.14.2' }] } },
        },
      }
      await writeFile(file, JSON.stringify(set))
      await kubectl('apply', '-f', file)
      const pods = async (): Promise<string[]> =>
        (await kubectl('get', 'pods', '-l', 'backup.example.com/backuppodset=web', '-o', 'name'))
          .split('\n')
          .filter(Boolean)
      const until = { interval: 200 }
      await vi.waitFor(async () => expect(await pods(), log).toHaveLength(4), until)
      await kubectl('patch', 'bps', 'web', '--type=merge', '-p', '{"spec":{"replicas":1,"coldBackups":0}}')
      await vi.waitFor(async () => expect(await pods(), log).toHaveLength(2), until)
      await vi.waitFor(
        async () => expect((await requestsOf(user)).map(right)).toContain('create events'),
        until,
      )
    } finally {
      child.kill('SIGTERM')
      await exited
    }
    const requests = await requestsOf(user)
    expect(requests.filter(({ responseStatus }) => responseStatus?.code === 403)).toEqual([])
    expect([...new Set(requests.map(right))]).toEqual(
      expect.arrayContaining([
        ...['watch backuppodsets', 'update backuppodsets status'],
        ...['watch pods', 'create pods', 'delete pods', 'create events'],
        ...['get leases', 'create leases', 'update leases', 'get secrets', 'create secrets'],
      ]),
    )
  }, 300_000)
})
