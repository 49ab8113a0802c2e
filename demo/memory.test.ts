import { expect, test } from 'vitest'
import { KubeError } from '../src/kube/errors.ts'
import { tellMemory } from './memory.ts'
import { createScreen } from './screen.ts'
import type { Stage } from './stage.ts'

interface Named {
  readonly plural: string
}

/** A cluster with two capable nodes; the containers of the set's pods are waiting as given. */
function stageWith(waiting: { reason: string; message?: string }): Stage {
  const made = new Set<string>()
  const pod = {
    metadata: { name: 'memory-1', uid: '1', resourceVersion: '1' },
    status: {
      containerStatuses: [{ name: 'app', image: 'understudy.invalid/counter:0.1.0', state: { waiting } }],
    },
  }
  const api = {
    list: async ({ plural }: Named) => ({
      items: plural === 'nodereports' ? [{ status: { ready: true } }, { status: { ready: true } }] : [pod],
    }),
    create: async (_: Named, { metadata }: { metadata: { name: string } }) => void made.add(metadata.name),
    get: async (_: Named, { name }: { name: string }) => {
      if (!made.has(name)) throw new KubeError('NotFound', name)
      return { metadata: { name } }
    },
    delete: async () => {
      throw new KubeError('NotFound', 'it')
    },
  }
  return { api, namespace: 'demo', patienceMs: 1_000 } as unknown as Stage
}

const told = (stage: Stage) =>
  tellMemory(
    stage,
    createScreen({ write: () => undefined }),
    async () => undefined,
    AbortSignal.timeout(30_000),
  )

test.each(['ErrImagePull', 'ImagePullBackOff', 'ErrImageNeverPull', 'InvalidImageName'])(
  '§7.14: an image that a node cannot get (%s) ends the wait for it, by its name',
  async reason => {
    await expect(told(stageWith({ reason, message: 'no such host' }))).rejects.toThrow(
      'memory-1 waits for the image understudy.invalid/counter:0.1.0, which its node cannot get: no such host',
    )
  },
)

test('what only takes its time is waited for', async () => {
  await expect(told(stageWith({ reason: 'ContainerCreating' }))).rejects.toThrow(
    'not within 1 s: protection of the memory',
  )
})
