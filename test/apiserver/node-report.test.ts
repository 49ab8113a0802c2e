import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import {
  type NodeReport,
  type NodeReportStatus,
  nodeReports,
  parseReport,
  writtenSlots,
} from '../../src/api/node-report.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { apiVersionOf } from '../../src/kube/resources.ts'
import { adminKubeconfig } from './lib/plane.ts'

const run = promisify(execFile)
const ref = { name: 'reported-node' }

let api: Api
beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  const body = { apiVersion: apiVersionOf(nodeReports), kind: nodeReports.kind, metadata: ref }
  await api.create<NodeReport>(nodeReports, body)
})
afterAll(async () => {
  await api.delete(nodeReports, ref)
  await api.close()
})

const slot = {
  namespace: 'shop',
  name: 'web-3',
  incarnation: '0a1b2c3d',
  role: 'holder',
  generation: 7,
} as const
const status: NodeReportStatus = {
  version: '0.1.0',
  address: '10.0.0.1:9443',
  fingerprint: 'ab'.repeat(32),
  kernel: '6.18.0',
  criu: '4.2.1',
  architecture: 'x86_64',
  checks: [
    { name: 'criu', ok: true, message: 'found' },
    { name: 'canary', ok: false, message: 'cannot restore', cure: 'load the module' },
  ],
  ready: false,
  slots: [
    slot,
    {
      ...slot,
      name: 'web-4',
      takenAt: '2026-01-01T00:00:00.5Z',
      bytes: 5_000_000_000,
      frozenSeconds: 0.0071,
      pipelineSeconds: 0.25,
      usable: 'Frozen',
      understudyUid: 'u',
      intervalSeconds: 1.5,
      reason: 'Slow',
      message: 'wait',
    },
  ],
  slotCount: 2,
  updatedAt: '2026-01-01T00:00:01Z',
}
const write = (of: object) =>
  api.patch<NodeReport>(nodeReports, ref, { type: 'merge', body: { status: of } }, { subresource: 'status' })

describe('NodeReport', () => {
  it('is stored as it was written, every field of it', async () => {
    expect((await write(status)).status).toEqual(status)
  })

  it('takes the entries of agents of the version before', async () => {
    const { name: _, incarnation: __, ...rest } = slot
    const before = { ...rest, set: 'web', slot: 3, life: '0a1b2c3d' }
    const written = await write({ ...status, slots: [before] })
    expect(written.status?.slots).toEqual([before])
    expect(parseReport(written).status?.slots).toEqual([slot])
    expect((await write({ ...status, slots: writtenSlots([slot]) })).status?.slots).toEqual([
      { ...before, ...slot },
    ])
  })

  it('shows in kubectl what decides whether a node can be used', async () => {
    await write(status)
    const args = ['--kubeconfig', adminKubeconfig(), 'get', 'nodereports', ref.name]
    const { stdout } = await run(inject('kubectl'), args)
    const [header, row] = stdout.trimEnd().split('\n')
    expect(header?.split(/\s+/)).toEqual(['NAME', 'READY', 'CRIU', 'SLOTS', 'AGE'])
    expect(row?.split(/\s+/).slice(0, 4)).toEqual([ref.name, 'false', '4.2.1', '2'])
  })

  it('is written through status alone', async () => {
    await write(status)
    const body = { status: { ready: true } }
    const patched = await api.patch<NodeReport>(nodeReports, ref, { type: 'merge', body })
    expect(patched.status?.ready).toBe(false)
  })

  it.each([
    ['a fingerprint that is none', { fingerprint: 'AB' }, /status\.fingerprint.*should match/],
    [
      'a way to go on that there is not',
      { slots: [{ ...slot, usable: 'Warm' }] },
      /supported values: "Frozen", "Staged"/,
    ],
    ['a slot without its namespace', { slots: [{ ...slot, namespace: null }] }, /namespace/],
  ])('refuses %s', async (_, change, message) => {
    await expect(write({ ...status, ...change })).rejects.toThrow(message)
  })
})
