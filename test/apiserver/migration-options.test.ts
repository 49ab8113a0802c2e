/** Options of a Migration: each value works, or the API server refuses it with the reason. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  connectionsRefusal,
  copyRefusal,
  type Migration,
  type MigrationSpec,
  migrations,
  transferRefusal,
} from '../../src/api/migration.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { namespaces } from '../../src/kube/resources.ts'
import { adminKubeconfig } from './lib/plane.ts'

let api: Api
const namespace = `options-${randomBytes(4).toString('hex')}`
beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  await api.create(namespaces, { metadata: { name: namespace } })
})
afterAll(() => api.close())

const create = (spec: Partial<MigrationSpec>): Promise<Migration> =>
  api.create(
    migrations,
    {
      ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'Migration' },
      metadata: { generateName: 'move-' },
      spec: { source: { name: 'web-0' }, ...spec },
    },
    { namespace },
  )

describe('a Migration', () => {
  it('MP-24, MP-25: may name how its memory is carried, if that is how it is', async () => {
    const { spec } = await create({ transfer: 'Direct', copy: 'PreCopy', maxDowntime: '300ms' })
    expect(spec).toMatchObject({ transfer: 'Direct', copy: 'PreCopy' })
    expect((await create({})).spec.transfer).toBeUndefined()
  })

  it.each(['SharedVolume', 'ClaimedVolume'] as const)(
    'MP-24: with transfer %s is refused',
    async transfer => {
      await expect(create({ transfer })).rejects.toThrow(transferRefusal)
    },
  )

  it.each(['PostCopy', 'Hybrid'] as const)('MP-25: with copy %s is refused', async copy => {
    await expect(create({ copy })).rejects.toThrow(copyRefusal)
  })

  it('MP-26: may say that connections are closed, and is refused if it asks to keep them', async () => {
    expect((await create({ connections: 'Close' })).spec.connections).toBe('Close')
    await expect(create({ connections: 'Keep' })).rejects.toThrow(connectionsRefusal)
  })
})
