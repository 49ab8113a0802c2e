import { expect, test } from 'vitest'
import { outOfService, type Taint } from '../../api/out-of-service.ts'
import { KubeError } from '../../kube/errors.ts'
import type { KubeObject } from '../../kube/object.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { exitCodes } from '../failure.ts'
import { makeSession } from '../testing/session.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import { fence, unfence } from './fence.ts'

const kept: Taint = { key: 'example.com/gpu', effect: 'NoSchedule' }

const taintsIn = ({ spec }: { readonly spec?: object }): Taint[] =>
  spec !== undefined && 'taints' in spec && Array.isArray(spec.taints) ? spec.taints : []

/** A cluster with one node, and a primary on it. */
function cluster({
  ready = 'Unknown',
  taints = [kept],
  conflicts = 0,
}: {
  ready?: string
  taints?: Taint[]
  conflicts?: number
} = {}) {
  const world = { taints, conflicts, asked: [] as (string | undefined)[] }
  const terminal = recordingTerminal()
  const primary: KubeObject = {
    metadata: { namespace: 'shop', name: 'cart-0', uid: 'p', resourceVersion: '1' },
  }
  const api = fakeApi({
    async list(_, query) {
      world.asked.push(query.labelSelector, query.fieldSelector)
      return { items: [primary], metadata: { resourceVersion: '1' } }
    },
    async get(_, { name }) {
      if (name !== 'n1') throw new KubeError('NotFound', name)
      return {
        metadata: { name, uid: 'u', resourceVersion: String(world.conflicts) },
        spec: { taints: world.taints },
        status: { conditions: [{ type: 'Ready', status: ready }] },
      }
    },
    async patch(_, { name }, { body }) {
      if (world.conflicts > 0) {
        world.conflicts -= 1
        throw new KubeError('Conflict', name)
      }
      expect(body.metadata).toEqual({ uid: 'u', resourceVersion: '0' })
      world.taints = taintsIn(body)
      return { metadata: { name, uid: 'u', resourceVersion: '1' } }
    },
  })
  return { world, terminal, session: makeSession({ api, terminal }) }
}

const word: Taint = { key: outOfService, value: 'nodeshutdown', effect: 'NoExecute' }

test('a node that is not Ready is declared out of service beside its other taints, also when others change it meanwhile', async () => {
  const { world, terminal, session } = cluster({ conflicts: 2 })
  await fence(session, 'n1', {})
  expect(world.taints).toEqual([kept, word])
  expect(world.asked).toEqual(['backup.example.com/role=primary', 'spec.nodeName=n1'])
  expect(terminal.written.join('\n')).toContain('shop/cart-0 gets its successor')
})

test('a node that is Ready is left alone, unless the user insists', async () => {
  const { world, session } = cluster({ ready: 'True' })
  await expect(fence(session, 'n1', {})).rejects.toMatchObject({ exitCode: exitCodes.refused })
  expect(world.taints).toEqual([kept])
  await fence(session, 'n1', { force: true })
  expect(world.taints).toEqual([kept, word])
})

test('the declaration is taken back alone, and both can be repeated', async () => {
  const { world, terminal, session } = cluster({ taints: [word, kept] })
  await fence(session, 'n1', {})
  await unfence(session, 'n1')
  await unfence(session, 'n1')
  expect(world.taints).toEqual([kept])
  expect(terminal.written.join('\n')).toMatch(
    /was out of service already.*is in service again.*was not out of service/s,
  )
})

test('an unknown node is named', async () => {
  await expect(fence(cluster().session, 'n2', {})).rejects.toThrow('there is no node n2')
})
