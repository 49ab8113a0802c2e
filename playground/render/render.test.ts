import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { run, runToEnd } from '../exec.ts'
import { planCluster } from '../plan.ts'
import { controlPlaneServices, dnsManifests } from './control-plane.ts'
import { type InitInputs, renderInit, renderServices, socketExists } from './init.ts'
import { renderStages } from './kwok.ts'
import { nodeServices, renderNodeFiles } from './node.ts'
import { commandLine, quote } from './shell.ts'

const plan = planCluster('x', 2, 3)
const [node] = plan.nodes
if (node === undefined) throw new Error('no node')

let dir: string
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'understudy-render-'))
})
afterAll(() => rm(dir, { recursive: true }))

test.each(['plain', "it's", 'a b', '$HOME `x` "y"', '', 'new\nline', '*'])(
  'a shell reads %j back as it is',
  async word => {
    expect(await run(['sh', '-c', `printf %s ${quote(word)}`])).toBe(word)
    expect(await run(['sh', '-c', commandLine(['printf', '%s|', word, 'end'])])).toBe(`${word}|end|`)
  },
)

describe('init', () => {
  const inputs = (services: InitInputs['services']): InitInputs => ({
    hostname: 'n1',
    cgroups: ['/sys/fs/cgroup/x'],
    pidFile: '/x/pid',
    overlay: { lower: '/l', upper: '/u', work: '/w', merged: '/m' },
    binds: { '/inside': "/out'side" },
    hosts: { n1: '10.0.0.1' },
    machineId: 'abc',
    sysctls: { 'net/ipv4/ip_forward': '1' },
    path: ['/opt/x'],
    services,
  })

  test('is a script that bash can read', async () => {
    for (const text of [
      renderInit(inputs([])),
      renderServices(
        inputs([...nodeServices(plan, node), ...controlPlaneServices(plan, '/pki', ['--a=b c'])]),
      ),
    ]) {
      const path = join(dir, 'script')
      await writeFile(path, text)
      expect(await runToEnd(['bash', '-n', path])).toMatchObject({ code: 0, stderr: '' })
    }
  })

  test('starts a service when its conditions hold, and again when it ends', async () => {
    const marker = join(dir, 'go')
    const count = join(dir, 'count')
    const service = {
      name: 'x',
      argv: ['sh', '-c', `echo run >> ${count}; exit 3`],
      after: [`[ -e ${marker} ]`],
    }
    const script = renderServices({ ...inputs([service]), sysctls: {} })
      .replaceAll('/var/log/understudy', dir)
      .replaceAll('sleep 1', 'sleep 0.05')
    const stop = new AbortController()
    const running = run(['bash', '-c', script], { signal: stop.signal }).catch((error: unknown) => error)
    await expect(readFile(count, 'utf8')).rejects.toMatchObject({ code: 'ENOENT' })
    await writeFile(marker, '')
    await expect
      .poll(() => readFile(count, 'utf8').catch(() => ''), { timeout: 10_000 })
      .toMatch(/^(run\n){2,}/)
    stop.abort()
    await running
    expect(await readFile(join(dir, 'x.log'), 'utf8')).toContain('ended with 3')
  })

  test('socketExists is a shell condition', async () => {
    expect((await runToEnd(['bash', '-c', socketExists('/nonexistent')])).code).toBe(1)
  })
})

describe('a node', () => {
  const files = renderNodeFiles(plan, node, { pauseImage: 'docker.io/x/pause:1', lowerOomScore: false })

  test('has a kubelet that lets nobody in without the API server saying so', () => {
    expect(parse(files['kubelet.yaml'] ?? '')).toMatchObject({
      authentication: { anonymous: { enabled: false }, webhook: { enabled: true } },
      authorization: { mode: 'Webhook' },
      cgroupRoot: '/us-x-n1',
      clusterDNS: ['10.130.128.10'],
    })
  })

  test('tells containerd to leave oom scores alone only where they cannot be lowered', () => {
    expect(files['containerd.toml']).toContain('restrict_oom_score_adj = true')
    const able = renderNodeFiles(plan, node, { pauseImage: 'p', lowerOomScore: true })
    expect(able['containerd.toml']).toContain('restrict_oom_score_adj = false')
  })

  test('gives pods addresses of its own network only', () => {
    const { plugins } = JSON.parse(files['cni/10-understudy.conflist'] ?? '')
    expect(plugins[0]).toMatchObject({
      type: 'bridge',
      ipMasq: false,
      ipam: { ranges: [[{ subnet: '10.130.65.0/24' }]] },
    })
  })
})

test('cluster DNS needs no pod: its Service has no selector, its endpoint is the control plane', () => {
  const manifests = dnsManifests(plan) as { kind: string; spec?: object; endpoints?: object }[]
  const service = manifests.find(it => it.kind === 'Service')
  expect(service?.spec).toMatchObject({ clusterIP: '10.130.128.10' })
  expect(service?.spec).not.toHaveProperty('selector')
  expect(manifests.find(it => it.kind === 'EndpointSlice')?.endpoints).toMatchObject([
    { addresses: ['10.130.0.1'] },
  ])
})

test('fake pods: exactly one stage applies to a new pod, with a gate and without', () => {
  const stages = parseAllDocuments(renderStages()).map(document => document.toJS())
  const gate = (name: string) =>
    stages
      .find(it => it.metadata.name === name)
      .spec.selector.matchExpressions.find((it: { key: string }) => it.key.includes('initContainers'))
  expect(gate('pod-ready')).toMatchObject({ operator: 'NotIn', values: ['understudy-gate'] })
  expect(gate('pod-gated')).toMatchObject({ operator: 'In', values: ['understudy-gate'] })
  // kwok-gates.ts listens there, so fake gates can be reached like those of real pods.
  const addressOf = (name: string) =>
    /\{\{ with (\w+)[^}]*\}\}\npodIP:/.exec(
      stages.find(it => it.metadata.name === name).spec.next.statusTemplate,
    )?.[1]
  expect([addressOf('pod-ready'), addressOf('pod-gated')]).toEqual(['PodIPsWith', 'NodeIPsWith'])
})
