/** Versions, completion, a support bundle and the single executable, against a real API server. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { buildCli } from '../../../build/cli.ts'
import { buildExecutable } from '../../../plugin/executable.ts'
import { ownPlatform } from '../../../plugin/platform.ts'
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import { nodeReports } from '../../../src/api/node-report.ts'
import { runCli } from '../../../src/cli/program.ts'
import { recordingTerminal } from '../../../src/cli/testing/terminal.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { leases, namespaces, nodes, pods } from '../../../src/kube/resources.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { cli } from './run.ts'

const run = promisify(execFile)
const namespace = `day-${randomBytes(4).toString('hex')}`
const inNamespace = ['-n', namespace]
/** Stands for every secret of a user. */
const planted = 'pl4nted-S3cret'
let api: Api
let scratch = ''

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-day-'))
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  await api.create(namespaces, { metadata: { name: namespace, annotations: { note: planted } } })
  const container = {
    ...{ name: 'app', image: 'app', command: [planted], args: [planted] },
    env: [{ name: 'PASSWORD', value: planted }],
  }
  const metadata = { annotations: { 'team/note': planted }, labels: { team: planted } }
  const web = await api.create(
    backupPodSets,
    {
      ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet' },
      metadata: { name: 'web', ...metadata },
      spec: {
        // Paused, so that no operator of another test acts on it.
        paused: true,
        checkpoint: {
          source: 'http',
          http: { port: 80, path: `/${planted}`, headers: [{ name: 'authorization', value: planted }] },
        },
        template: { metadata, spec: { containers: [container] } },
      },
    },
    { namespace },
  )
  const mark = { ...metadata.labels, [labels.set]: 'web' }
  await api.create(
    pods,
    { metadata: { name: 'web-p', ...metadata, labels: mark }, spec: { containers: [container] } },
    { namespace },
  )
  await api.create(
    leases,
    {
      metadata: { name: 'web-0', labels: mark, annotations: { 'backup.example.com/disk-key': planted } },
      spec: { holderIdentity: 'web-p' },
    },
    { namespace },
  )
  await api.create(nodes, { metadata: { name: `${namespace}-n`, ...metadata } })
  await api.create(nodeReports, {
    ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'NodeReport' },
    metadata: { name: `${namespace}-n`, ...metadata },
  })
  for (const [name, reportingController] of [
    ['of-kubelet', 'kubelet'],
    ['of-operator', 'understudy-operator'],
  ] as const)
    await api.request('POST', `/apis/events.k8s.io/v1/namespaces/${namespace}/events`, {
      body: {
        ...{ apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { name } },
        ...{ eventTime: '2030-01-01T00:00:00.000000Z', action: 'Does', type: 'Warning' },
        ...{
          reportingController,
          reportingInstance: 'x',
          reason: name === 'of-kubelet' ? 'Unhealthy' : 'Told',
        },
        regarding: { kind: 'BackupPodSet', namespace, name: 'web', uid: web.metadata.uid },
        note: name === 'of-kubelet' ? `probe: ${planted}` : `password=${planted}`,
      },
    })
})
afterAll(async () => {
  await api.delete(backupPodSets, { namespace, name: 'web' })
  await api.delete(nodes, { name: `${namespace}-n` })
  await api.delete(nodeReports, { name: `${namespace}-n` })
  await api.close()
  await rm(scratch, { recursive: true, force: true })
})

describe('D19.bundle: report', () => {
  it('has what helps, and nothing of the data of users', async () => {
    const file = join(scratch, 'bundle.tar.gz')
    const { exitCode, out } = await cli(['report', '--file', file, ...inNamespace])
    expect(exitCode).toBe(0)
    expect(out).toContain('read it before you send it')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    await run('tar', ['-xzf', file, '-C', scratch])
    const directory = join(scratch, 'understudy-report')
    // Other tests leave objects of the whole cluster on this server.
    const { stdout } = await run('find', [directory, '-type', 'f', '-exec', 'cat', '{}', '+'], {
      maxBuffer: 64 * 2 ** 20,
    })
    expect(stdout).not.toContain(planted)
    const sets = JSON.parse(await readFile(join(directory, 'objects/backuppodsets.json'), 'utf8')) as {
      items: { metadata: { name: string; namespace: string } }[]
    }
    expect(sets.items.find(each => each.metadata.namespace === namespace)).toMatchObject({
      metadata: { name: 'web' },
      spec: { paused: true, checkpoint: { source: 'http', http: { port: 80 } } },
    })
    for (const word of ['web-p', 'web-0', `${namespace}-n`, 'Unhealthy', 'password=[redacted]'])
      expect(stdout).toContain(word)
    const again = await cli(['report', '--file', file])
    expect(again).toMatchObject({ exitCode: 1, err: expect.stringContaining('exists already') })
  })

  it('of a user with few rights says what is not in it', async () => {
    const file = join(scratch, 'small.tar.gz')
    const args = ['report', '--file', file, ...inNamespace, '--as', 'nobody-in-particular', '-o', 'json']
    const { exitCode, out } = await cli(args)
    expect(exitCode).toBe(0)
    const { kind, unread } = JSON.parse(out) as { kind: string; unread: string[] }
    expect(kind).toBe('SupportBundle')
    expect(unread.join('\n')).toMatch(/^backuppodsets: .*nobody-in-particular/m)
  })
})

describe('D19.versions: version', () => {
  it('tells both sides, as text and as YAML', async () => {
    const { exitCode, out } = await cli(['version', ...inNamespace])
    expect(exitCode).toBe(0)
    expect(out).toMatch(/^client +0\.\d+\.\d+ \(Node v/)
    expect(out).toContain('backuppodsets: v1alpha1 is served, with every field that this version knows')
    const data = parse((await cli(['version', '-o', 'yaml'])).out)
    expect(data).toMatchObject({ apiVersion: 'cli.backup.example.com/v1alpha1', kind: 'Versions' })
  })
})

describe('D19.names: completion', () => {
  it('has the names of the cluster', async () => {
    const words = (...typed: string[]) => completed('--kubeconfig', adminKubeconfig(), ...typed)
    expect(await words('-n', namespace, 'status', 'w')).toEqual(['web', ':4'])
    expect(await words('fence', `${namespace}-`)).toEqual([`${namespace}-n`, ':4'])
    expect(await words('status', '-n', namespace.slice(0, -2))).toEqual([namespace, ':4'])
  })
})

describe('users who are not that lucky', () => {
  it('--as acts as another user, with the groups of another', async () => {
    const as = (...more: string[]) => cli(['status', ...inNamespace, '--as', 'somebody', ...more])
    expect(await as()).toMatchObject({ exitCode: 1, err: expect.stringContaining('"somebody"') })
    expect(await as('--as-group', 'system:masters', '--as-group', 'others')).toMatchObject({ exitCode: 0 })
    expect(await cli(['status', '--as-group', 'x'])).toMatchObject({ exitCode: 2 })
  })

  it('an API server that is away is told in one line and one arrow', async () => {
    const kubeconfig = join(scratch, 'away')
    const admin = parse(await readFile(adminKubeconfig(), 'utf8')) as { clusters: { cluster: object }[] }
    const clusters = admin.clusters.map(each => ({
      ...each,
      cluster: { ...each.cluster, server: 'https://127.0.0.1:1' },
    }))
    await writeFile(kubeconfig, stringify({ ...admin, clusters }))
    for (const command of [['status'], ['version'], ['doctor'], ['report'], ['logs', 'web']]) {
      const { exitCode, out, err } = await cli([...command, '--request-timeout', '300ms'], { kubeconfig })
      expect([command, exitCode, out]).toEqual([command, 1, ''])
      expect(err).toMatch(/error: [^\n]*\n {2}→ check that https:\/\/127\.0\.0\.1:1 can be reached[^\n]*$/)
    }
  })

  it('logs without an installation say where they were looked for', async () => {
    const { exitCode, err } = await cli(['logs', 'web', ...inNamespace, '--operator-namespace', 'nowhere'])
    expect([exitCode, err]).toEqual([1, expect.stringContaining('no pods of Understudy in nowhere')])
  })
})

describe('D19.alone: the single executable', () => {
  it('works against a real API server where there is no Node', async () => {
    const { program } = await buildCli(join(scratch, 'script'))
    const executable = await buildExecutable(ownPlatform(), program, join(scratch, 'executable'))
    const env = { PATH: join(scratch, 'nothing'), KUBECONFIG: adminKubeconfig() }
    const alone = (...args: string[]) => run(executable, args, { env })
    expect((await alone('status', ...inNamespace)).stdout).toMatch(/^NAME +READY.*\nweb /)
    expect(parse((await alone('status', 'web', ...inNamespace, '-o', 'yaml')).stdout)).toMatchObject({
      ...{ apiVersion: 'cli.backup.example.com/v1alpha1', kind: 'SetStatus', name: 'web' },
    })
    expect((await alone('__complete', ...inNamespace, 'status', '')).stdout).toBe('web\n:4\n')
    expect((await alone('version')).stdout).toContain('nodereports: v1alpha1 is served')
    // A reader that has seen enough is no failure.
    const piped = await run(
      '/bin/sh',
      ['-c', `"${executable}" status -A ${inNamespace.join(' ')} | /usr/bin/head -1`],
      { env },
    )
    expect(piped.stdout).toMatch(/^NAMESPACE +NAME +READY/)
    expect(piped.stderr).toBe('')
    await expect(alone('status', '--timeout')).rejects.toMatchObject({ code: 2 })
  })
})

async function completed(...typed: string[]): Promise<readonly string[]> {
  const terminal = recordingTerminal()
  await runCli(['__complete', ...typed], terminal, new AbortController().signal)
  return terminal.written.join('\n').split('\n')
}
