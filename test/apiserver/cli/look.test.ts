/**
 * `status` and `doctor` against two real API servers: one with our kinds and a set, and one without anything of ours.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { parse, stringify } from 'yaml'
import { type ControlPlane, startControlPlane } from '../../../playground/control-plane.ts'
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { migrations } from '../../../src/api/migration.ts'
import { recordingTerminal } from '../../../src/cli/testing/terminal.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { namespaces } from '../../../src/kube/resources.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { cli } from './run.ts'

let api: Api
const namespace = `cli-${randomBytes(4).toString('hex')}`
const inNamespace = ['-n', namespace]
const condition = (type: string, status: string, reason: string) => ({
  ...{ type, status, reason, message: '', lastTransitionTime: '2030-01-01T00:00:00Z', observedGeneration: 1 },
})

beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  await api.create(namespaces, { metadata: { name: namespace } })
  await api.create(
    backupPodSets,
    {
      apiVersion: 'backup.example.com/v1alpha1',
      kind: 'BackupPodSet',
      metadata: { name: 'web' },
      // Paused, so that no operator of another test acts on it.
      spec: {
        replicas: 2,
        paused: true,
        template: { spec: { containers: [{ name: 'app', image: 'app' }] } },
      },
    },
    { namespace },
  )
  await writeStatus(1)
})
afterAll(async () => {
  await api.delete(backupPodSets, { namespace, name: 'web' })
  await api.close()
})

const writeStatus = (readyReplicas: number) =>
  api.patch(
    backupPodSets,
    { namespace, name: 'web' },
    {
      type: 'merge',
      body: {
        status: {
          observedGeneration: 1,
          readyReplicas,
          conditions: [condition('Ready', 'False', 'PodsMissing')],
        },
      },
    },
    { subresource: 'status' },
  )

describe('status', () => {
  it('lists sets, and says what they need', async () => {
    const { exitCode, out } = await cli(['status', ...inNamespace])
    expect(exitCode).toBe(0)
    expect(out).toMatch(/^NAME +READY/)
    expect(out).toMatch(/^web +no +1\/2 +0\/0 +0\/0 +- +- +\S+ +PodsMissing$/m)
  })

  it('of all namespaces names the namespace', async () => {
    const { out } = await cli(['status', '-A'])
    expect(out).toMatch(new RegExp(`^${namespace} +web`, 'm'))
  })

  it('of one set has its conditions with their cures, and as JSON the same as data', async () => {
    const { out } = await cli(['status', 'web', ...inNamespace])
    expect(out).toContain('✗ Ready is False (PodsMissing)\n  → ')
    const { out: json } = await cli(['status', 'web', ...inNamespace, '-o', 'json'])
    expect(JSON.parse(json)).toMatchObject({
      name: 'web',
      primaries: { wanted: 2, inPlace: 1 },
      ready: false,
    })
  })

  it('followed, it shows every change until it is interrupted, and that is no failure', async () => {
    const stop = new AbortController()
    const terminal = recordingTerminal()
    const ended = cli(['status', 'web', ...inNamespace, '-w'], { signal: stop.signal, terminal })
    const shows = (text: string) => vi.waitFor(() => expect(terminal.pictures.at(-1)).toContain(text))
    await shows('primaries      1/2 ready')
    await writeStatus(2)
    await shows('primaries      2/2 ready')
    stop.abort(new Error('Ctrl-C'))
    expect(await ended).toMatchObject({ exitCode: 0, err: '' })
    await writeStatus(1)
  })

  it('of a set that is not there says which ones are', async () => {
    const { exitCode, err } = await cli(['status', 'wbe', ...inNamespace])
    expect(exitCode).toBe(1)
    expect(err).toBe(`error: there is no BackupPodSet wbe in namespace ${namespace}\n  → did you mean web?`)
    const elsewhere = await cli(['status', 'web', '-n', 'default'])
    expect(elsewhere.err).toContain(`-n ${namespace}`)
  })
})

describe('who may do little', () => {
  let directory: string
  let kubeconfig: string
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'understudy-cli-'))
    kubeconfig = join(directory, 'kubeconfig')
    const admin = parse(await readFile(adminKubeconfig(), 'utf8')) as { users: { user: object }[] }
    const users = admin.users.map(user => ({ ...user, user: { ...user.user, as: 'nobody-in-particular' } }))
    await writeFile(kubeconfig, stringify({ ...admin, users }))
  })
  afterAll(() => rm(directory, { recursive: true }))

  it('is told what is missing, without a stack', async () => {
    const { exitCode, out, err } = await cli(['status', ...inNamespace], { kubeconfig })
    expect([exitCode, out]).toEqual([1, ''])
    expect(err).toContain('nobody-in-particular')
    expect(err).toContain('→ ask for the ClusterRole understudy-view')
    expect(err).not.toMatch(/^\s+at /m)
  })

  it('hears from doctor which rights these are, and what could not be looked at', async () => {
    const { out } = await cli(['doctor', ...inNamespace, '-o', 'json'], { kubeconfig })
    const { findings } = JSON.parse(out) as {
      findings: { area: string; about: string; verdict: string; message: string }[]
    }
    const promote = findings.find(({ area, about }) => area === 'you' && about === 'promote')
    expect(promote?.message).toBe(`nobody-in-particular may not: delete pods in ${namespace}`)
    expect(findings.filter(({ verdict }) => verdict === 'unknown').map(({ about }) => about)).toEqual(
      expect.arrayContaining(['backuppodsets', 'deployment', 'wake key', 'daemonset', 'reports', 'sets']),
    )
    expect(findings.filter(({ verdict }) => verdict === 'broken')).toEqual([])
  })
})

describe('doctor', () => {
  it('knows the kinds as those of its own version, and finds the operator missing', async () => {
    const { exitCode, out } = await cli(['doctor', ...inNamespace, '--operator-namespace', 'nowhere'])
    expect(exitCode).toBe(1)
    expect(out).toContain('✓ backuppodsets: v1alpha1 is served, with every field that this version knows')
    expect(out).toContain('✓ nodereports: v1alpha1 is served, with every field that this version knows')
    for (const kind of ['migrations', 'migratingpods'])
      expect(out).toContain(`✓ ${kind}: v1alpha1 is served, with every field that this version knows`)
    expect(out).toContain('✗ deployment: there is no Deployment understudy-operator in nowhere')
    expect(out).toContain(`✗ ${namespace}/web Ready: PodsMissing`)
    expect(out).toContain('✓ promote: ')
  })
})

describe('D18.migrations: a Migration that no operator has seen', () => {
  it('is a finding of doctor', async () => {
    const metadata = { name: 'waits', namespace }
    const spec = { source: { name: 'web-p' } }
    const kind = { apiVersion: 'backup.example.com/v1alpha1', kind: 'Migration' }
    await api.create(migrations, { ...kind, metadata, spec }, { namespace })
    try {
      const { out } = await cli(['doctor', ...inNamespace])
      expect(out).toContain(`${namespace}/waits: is new: no operator has seen it yet`)
      expect(out).not.toContain('migrations: not checked')
    } finally {
      await api.delete(migrations, metadata)
    }
  })
})

describe('a cluster that knows nothing of Understudy', () => {
  let plane: ControlPlane
  beforeAll(async () => {
    plane = await startControlPlane()
  })
  afterAll(() => plane.stop())

  it('says how to install it', async () => {
    const { exitCode, err } = await cli(['status'], { kubeconfig: plane.kubeconfigPath })
    expect(exitCode).toBe(1)
    expect(err).toContain('→ install Understudy')
  })

  it('doctor examines what there is', async () => {
    const { exitCode, out } = await cli(['doctor'], { kubeconfig: plane.kubeconfigPath })
    expect(exitCode).toBe(1)
    expect(out).toContain(
      '✗ backuppodsets: the cluster does not have this kind\n      → run `kubectl apply -k deploy/`',
    )
  })
})

describe('the command line', () => {
  it.each([
    [['stat'], 'Did you mean status?'],
    [['status', '--watc'], 'Did you mean --watch?'],
    [['status', '-o', 'xml'], 'Allowed choices are wide, json, yaml'],
    [['checkpoint', 'web', '--timeout', 'soon'], 'must be a duration such as 90s'],
  ])('%j is answered with what was probably meant', async (args, words) => {
    const { exitCode, err } = await cli(args)
    expect(exitCode).toBe(2)
    expect(err).toContain(words)
  })

  it('help is no failure', async () => {
    const { exitCode, out } = await cli(['status', '--help'])
    expect(exitCode).toBe(0)
    expect(out).toContain('--all-namespaces')
    expect(out).toContain('--kubeconfig')
  })

  it('a kubeconfig that is not there, a context that is not in it, a server that nobody listens at', async () => {
    const missing = await cli(['status'], { kubeconfig: '/nowhere/kubeconfig' })
    expect(missing).toMatchObject({ exitCode: 1 })
    expect(missing.err).toContain('/nowhere/kubeconfig')
    expect((await cli(['status', '--context', 'other'])).err).toContain('no context "other"')
  })
})
