import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { type BackupPodSet, backupPodSets } from '../../src/api/backuppodset.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'

const root = new URL('../../', import.meta.url)
const run = promisify(execFile)
const kubectl = async (...args: string[]) =>
  (await run(inject('kubectl'), ['--kubeconfig', inject('kubeconfig'), ...args])).stdout
const sample = (name: string) => new URL(`samples/${name}`, root).pathname

let api: Api
beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: inject('kubeconfig') }) })
})
afterAll(() => api.close())

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
      ])
      expect(row?.split(/\s+/).slice(0, 5)).toEqual(['bps-sample', 'default', '2/2', '1/2', '0/2'])
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
    const crd = parse(readFileSync(new URL('crds/backup.example.com_backuppodsets.yaml', root), 'utf8'))
    const bare: string[] = []
    const visit = (schema: Record<string, unknown>, path: string) => {
      for (const [name, property] of Object.entries(
        (schema['properties'] ?? {}) as Record<string, Record<string, unknown>>,
      )) {
        if (!property['description'] && path !== '') bare.push(`${path}.${name}`)
        visit(property, `${path}.${name}`)
      }
      if (schema['items']) visit(schema['items'] as Record<string, unknown>, `${path}[]`)
    }
    visit(crd.spec.versions[0].schema.openAPIV3Schema, '')
    expect(bare).toEqual([])
  })

  it('is small enough for client-side kubectl apply, which keeps a copy in an annotation of at most 256 KiB', () => {
    const text = readFileSync(new URL('crds/backup.example.com_backuppodsets.yaml', root), 'utf8')
    expect(JSON.stringify(parse(text)).length).toBeLessThan(224 * 1024)
  })
})

describe('samples', () => {
  it.each(readdirSync(new URL('samples/', root)).filter(name => name.endsWith('.yaml')))(
    '%s is accepted',
    async name => {
      await kubectl('apply', '--dry-run=server', '-f', sample(name))
      expect(parseAllDocuments(readFileSync(sample(name), 'utf8')).length).toBeGreaterThan(0)
    },
  )
})
