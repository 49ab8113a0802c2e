import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { type BackupPodSet, type BackupPodSetStatus, backupPodSets } from '../../src/api/backuppodset.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { adminKubeconfig } from './lib/plane.ts'

const root = new URL('../../', import.meta.url)
const run = promisify(execFile)
const kubectl = async (...args: string[]) =>
  (await run(inject('kubectl'), ['--kubeconfig', adminKubeconfig(), ...args])).stdout
const sample = (name: string) => new URL(`samples/${name}`, root).pathname

let api: Api
beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
})
afterAll(() => api.close())

const status = (name: string, body: BackupPodSetStatus) =>
  api.patch(
    backupPodSets,
    { namespace: 'default', name },
    { type: 'merge', body: { status: body } },
    { subresource: 'status' },
  )

describe('the kind', () => {
  it('F01 F06: kubectl get bps prints the columns of the paper', async () => {
    await kubectl('apply', '-f', sample('paper.yaml'))
    try {
      const ref = { namespace: 'default', name: 'bps-sample' }
      const summary = { replicas: '2/2', hotbackups: '1/2', coldbackups: '0/2' }
      await api.patch(
        backupPodSets,
        ref,
        { type: 'merge', body: { status: { summary } } },
        { subresource: 'status' },
      )
      const [header, row] = (await kubectl('get', 'bps')).trimEnd().split('\n')
      expect(header?.split(/\s+/)).toEqual([
        'NAME',
        'NAMESPACE',
        'REPLICAS',
        'HOTBACKUPS',
        'COLDBACKUPS',
        'AGE',
        ...['READY', 'BACKUPS', 'PROTECTION'],
      ])
      expect(row?.split(/\s+/).slice(0, 5)).toEqual(['bps-sample', 'default', '2/2', '1/2', '0/2'])
    } finally {
      await kubectl('delete', 'bps', 'bps-sample')
    }
  })

  it('D19.selectable: kubectl get selects sets by protection', async () => {
    await kubectl('apply', '-f', sample('paper.yaml'))
    try {
      const ref = { namespace: 'default', name: 'bps-sample' }
      const summary = { replicas: '2/2', hotbackups: '1/2', coldbackups: '0/2', protection: 'Cold' }
      const shown = { ...summary, ready: '1/2', readyBackups: '1/4' }
      await api.patch(
        backupPodSets,
        ref,
        { type: 'merge', body: { status: { summary: shown } } },
        { subresource: 'status' },
      )
      const named = async (protection: string) =>
        await kubectl(
          ...['get', 'bps', '-o', 'name', '--field-selector', `status.summary.protection=${protection}`],
        )
      expect((await named('Cold')).trim()).toBe('backuppodset.backup.example.com/bps-sample')
      expect(await named('None')).toBe('')
      const [, row = ''] = (await kubectl('get', 'bps')).trimEnd().split('\n')
      expect(row.split(/\s+/).slice(-3)).toEqual(['1/2', '1/4', 'Cold'])
    } finally {
      await kubectl('delete', 'bps', 'bps-sample')
    }
  })

  it('F02: the object of the paper is stored with every field as written', async () => {
    const written = parse(readFileSync(sample('paper.yaml'), 'utf8')) as BackupPodSet
    const stored = await api.create(backupPodSets, written, { namespace: 'default', dryRun: true })
    expect(stored.spec).toMatchObject(written.spec)
    expect(stored.spec.template.metadata).toEqual({ name: 'nginx', labels: { app: 'nginx' } })
  })

  it('F03: status cannot be written through the object, nor the spec through status', async () => {
    const body = {
      metadata: { name: 'split' },
      spec: { replicas: 3, template: { spec: { containers: [{ name: 'a', image: 'a' }] } } },
      status: { replicas: 99 },
    }
    const kind = { apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet' }
    const created = await api.create(backupPodSets, { ...kind, ...body }, { namespace: 'default' })
    const ref = { namespace: 'default', name: 'split' }
    try {
      expect(created.status).toBeUndefined()
      const patch = { type: 'merge', body: { spec: { replicas: 7 }, status: { replicas: 1 } } } as const
      const afterStatus = await api.patch(backupPodSets, ref, patch, { subresource: 'status' })
      expect([
        afterStatus.spec.replicas,
        afterStatus.status?.replicas,
        afterStatus.metadata.generation,
      ]).toEqual([3, 1, 1])
      await kubectl('scale', 'bps', 'split', '--replicas=5')
      expect((await api.get(backupPodSets, ref)).spec.replicas).toBe(5)
    } finally {
      await api.delete(backupPodSets, ref)
    }
  })

  it('is found under its names: bps, and all', async () => {
    const resources = await kubectl('api-resources', '--api-group=backup.example.com', '-o', 'wide')
    expect(resources).toMatch(
      /backuppodsets\s+bps\s+backup\.example\.com\/v1alpha1\s+true\s+BackupPodSet.*\ball\b/,
    )
  })

  it('kubectl explain describes every field', async () => {
    const recursive = await kubectl('explain', 'backuppodset.spec', '--recursive')
    expect(recursive).toMatch(/wakeupTimeout\s+<integer>/)
    expect(recursive).toMatch(/readinessProbe\s+<Object>/)
    const nested = await kubectl('explain', 'backuppodset.spec.template.spec.containers.readinessProbe')
    expect(nested).toMatch(/periodSeconds\s+<integer>\n\s+How often/)
    expect(recursive + nested).not.toContain('<no description>')
  })

  it('kubectl get -o wide says whether a set is Available, and why it is not Ready', async () => {
    await kubectl('apply', '-f', sample('paper.yaml'))
    try {
      const condition = {
        type: 'Ready',
        status: 'False' as const,
        reason: 'PodsMissing',
        message: 'x',
        lastTransitionTime: '2026-01-01T00:00:00Z',
        observedGeneration: 1,
      }
      await status('bps-sample', { conditions: [condition, { ...condition, type: 'Available' }] })
      const [header, row] = (await kubectl('get', 'bps', '-o', 'wide')).trimEnd().split('\n')
      expect(header?.split(/\s+/).slice(-4)).toEqual(['PROTECTION', 'AVAILABLE', 'REASON', 'SUSPENDED'])
      expect(row?.split(/\s+/).slice(-2)).toEqual(['False', 'PodsMissing'])
    } finally {
      await kubectl('delete', 'bps', 'bps-sample')
    }
  })

  it('scale shows the primaries and how to find them, for autoscalers', async () => {
    await kubectl('apply', '-f', sample('paper.yaml'))
    try {
      const selector = 'backup.example.com/backuppodset=bps-sample,type=primary'
      await status('bps-sample', { replicas: 1, selector })
      const path = '/apis/backup.example.com/v1alpha1/namespaces/default/backuppodsets/bps-sample/scale'
      const { body } = await api.request('GET', path)
      expect(body).toMatchObject({ spec: { replicas: 2 }, status: { replicas: 1, selector } })
    } finally {
      await kubectl('delete', 'bps', 'bps-sample')
    }
  })

  it('the status is bounded', async () => {
    await kubectl('apply', '-f', sample('paper.yaml'))
    try {
      const names = (count: number) => Array.from({ length: count }, (_, n) => `bps-sample-${n}`)
      await status('bps-sample', { primaryPodNames: names(200) })
      await expect(status('bps-sample', { primaryPodNames: names(201) })).rejects.toThrow(/at most 200 items/)
      const slot = { slot: 1, pod: 'p', epoch: 1, ready: true }
      await expect(status('bps-sample', { slots: [slot, slot] })).rejects.toThrow(/Duplicate value/)
    } finally {
      await kubectl('delete', 'bps', 'bps-sample')
    }
  })
})

describe('samples', () => {
  const names = ['', 'by-use/'].flatMap(directory =>
    readdirSync(new URL(`samples/${directory}`, root))
      .filter(name => name.endsWith('.yaml'))
      .map(name => `${directory}${name}`),
  )
  it.each(names)('%s is accepted', async name => {
    await kubectl('apply', '--dry-run=server', '-f', sample(name))
    expect(parseAllDocuments(readFileSync(sample(name), 'utf8')).length).toBeGreaterThan(0)
  })
})
