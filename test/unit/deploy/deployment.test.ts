import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { gatePort } from '../../../src/backuppodset/pod/gate-container.ts'
import { appliedFiles, imagesIn, manifest, manifests, packageVersion, text } from './manifests.ts'

interface Container {
  readonly name: string
  readonly image: string
  readonly args: readonly string[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
}

const { spec } = await manifest<{
  spec: {
    selector: { matchLabels: Record<string, string> }
    template: { metadata: { labels: Record<string, string> }; spec: { containers: Container[] } }
  }
}>('deploy/operator/deployment.yaml')

test('both images have the version of the project', async () => {
  const version = await packageVersion()
  const [container] = spec.template.spec.containers
  expect(container?.image).toBe(`understudy.invalid/operator:${version}`)
  expect(container?.args).toContain(`--waker-image=understudy.invalid/waker:${version}`)
})

test('Deployment, budget, Service and policy select the same pods', async () => {
  const labels = spec.template.metadata.labels
  const budget = await manifest<{ spec: { selector: unknown } }>('deploy/operator/pod-disruption-budget.yaml')
  const service = await manifest<{ spec: { selector: unknown } }>('deploy/operator/service.yaml')
  const policy = await manifest<{ spec: { podSelector: unknown } }>('deploy/operator/network-policy.yaml')
  expect(spec.selector.matchLabels).toEqual(labels)
  expect(budget.spec.selector).toEqual({ matchLabels: labels })
  expect(service.spec.selector).toEqual(labels)
  expect(policy.spec.podSelector).toEqual({ matchLabels: labels })
})

test('every flag that the Deployment gives is one that the operator has', async () => {
  const flags = (spec.template.spec.containers[0]?.args ?? []).flatMap(
    arg => /^(--[\w-]+)/.exec(arg)?.[1] ?? [],
  )
  const main = await text('src/main.ts')
  expect(flags.filter(flag => !main.includes(flag))).toEqual([])
})

test.each(['--agent-namespace', '--agents-namespace'])(
  "the operator takes the agents' namespace as %s",
  flag => {
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ['src/main.ts', 'operator', `${flag}=a`, '--kubeconfig=/nonexistent'],
      { encoding: 'utf8' },
    )
    // It gets as far as the kubeconfig.
    expect([stderr, stdout]).toEqual(['', expect.stringContaining('cannot read kubeconfig /nonexistent')])
  },
)

test('D19.log-levels: a line of the log has its level as a word, and its time as in the API', () => {
  const { stdout } = spawnSync(process.execPath, ['src/main.ts', 'operator', '--kubeconfig=/nonexistent'], {
    encoding: 'utf8',
  })
  const [line = ''] = stdout.split('\n')
  expect(JSON.parse(line)).toMatchObject({
    ...{ level: 'info', time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) },
  })
})

test('the policy of the gate lets in the pods that the Deployment makes, on the port of the gate', async () => {
  const { spec: policy } = await manifest<{
    spec: {
      ingress: { from: { podSelector: { matchLabels: Record<string, string> } }[]; ports: unknown[] }[]
    }
  }>('deploy/network-policy/gate.yaml')
  const { labels } = await manifest<{
    labels: { pairs: Record<string, string>; includeTemplates: boolean }[]
  }>('deploy/operator/kustomization.yaml')
  const podLabels = { ...spec.template.metadata.labels, ...labels[0]?.pairs }
  expect(labels[0]?.includeTemplates).toBe(true)
  expect(policy.ingress).toHaveLength(1)
  expect(podLabels).toMatchObject(policy.ingress[0]?.from[0]?.podSelector.matchLabels ?? { missing: '' })
  expect(policy.ingress[0]?.ports).toEqual([{ port: gatePort, protocol: 'TCP' }])
})

test('scrapes reach the operator from one namespace and at one port, and nothing else does', async () => {
  const { spec: policy } = await manifest<{ spec: { policyTypes: string[]; ingress: unknown[] } }>(
    'deploy/operator/network-policy.yaml',
  )
  expect(policy.policyTypes).toEqual(['Ingress'])
  const monitoring = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }
  expect(policy.ingress).toEqual([{ from: [monitoring], ports: [{ port: 'metrics', protocol: 'TCP' }] }])
  const ports = spec.template.spec.containers.flatMap(container => container.ports)
  expect(ports.map(({ name }) => name)).toContain('metrics')
})

test('D10.images: nothing that is delivered names an image that strangers could publish', async () => {
  const named = await Promise.all(
    appliedFiles().map(async file =>
      imagesIn(await manifests(file)).map(image => `${file} ${image.replace(/:[^:]*$/, '')}`),
    ),
  )
  expect(named.flat()).toEqual(
    expect.arrayContaining([
      'deploy/operator/deployment.yaml understudy.invalid/operator',
      'deploy/operator/deployment.yaml understudy.invalid/waker',
      'samples/memory.yaml understudy.invalid/counter',
    ]),
  )
  const strange = named.flat().filter(each => !each.includes(' understudy.invalid/'))
  // Samples by use name public images of programs that this project does not build: official ones, with the registry.
  const official = (each: string) => /^samples\/by-use\/\S+ docker\.io\/library\/[a-z-]+$/.test(each)
  // The paper's example is there unchanged.
  expect(strange.filter(each => !official(each))).toEqual(['samples/paper.yaml nginx'])
})

test('D10.redis-password: it is in no argument, which everybody sees who may list processes', async () => {
  const redis = await manifest<{ spec: { template: { spec: { containers: Container[] } } } }>(
    'deploy/redis/redis.yaml',
  )
  const { spec: pod } = redis.spec.template
  expect(JSON.stringify(pod.containers.map(({ args }) => args))).not.toMatch(/PASSWORD|requirepass/)
  // The shell writes the file itself: `printf` is a builtin, not a process.
  expect(JSON.stringify(pod)).toContain('exec redis-server /run/redis/redis.conf')
})

test('§7.6: agents run on Linux nodes only, and are not put out of them', async () => {
  const agents = await manifest<{
    spec: { template: { spec: { nodeSelector: unknown; priorityClassName: string } } }
  }>('deploy/agent/daemonset.yaml')
  expect(agents.spec.template.spec).toMatchObject({
    nodeSelector: { 'kubernetes.io/os': 'linux' },
    priorityClassName: 'system-node-critical',
  })
})
