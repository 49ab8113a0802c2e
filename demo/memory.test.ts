import { expect, test } from 'vitest'
import { report } from '../src/cli/testing/objects.ts'
import { KubeError } from '../src/kube/errors.ts'
import type { Pod } from '../src/kube/resources.ts'
import { fakeApi, makeObject } from '../src/kube/testing/fake-api.ts'
import { tellMemory } from './memory.ts'
import { createScreen } from './screen.ts'
import type { Stage } from './stage.ts'

/** A cluster with two capable nodes; the containers of the set's pods are waiting as given. */
function stageWith(waiting: { reason: string; message?: string }): Stage {
  const made = new Set<string>()
  const pod: Pod = {
    metadata: { name: 'memory-1', uid: '1', resourceVersion: '1' },
    status: {
      containerStatuses: [
        {
          ...{ name: 'app', image: 'understudy.invalid/counter:0.1.0', imageID: '' },
          ...{ ready: false, restartCount: 0, state: { waiting } },
        },
      ],
    },
  }
  const api = fakeApi({
    list: async ({ plural }) => ({
      items: plural === 'nodereports' ? [report('n1'), report('n2')] : [pod],
      metadata: { resourceVersion: '1' },
    }),
    create: async (_, body) => {
      const object = makeObject(body)
      made.add(object.metadata.name)
      return object
    },
    get: async (_, { name }) => {
      if (!made.has(name)) throw new KubeError('NotFound', name)
      return makeObject({ metadata: { name } })
    },
    delete: async () => {
      throw new KubeError('NotFound', 'it')
    },
  })
  const unused = (): never => {
    throw new Error('nothing fails over in these tests')
  }
  return {
    ...{ api, namespace: 'demo', patienceMs: 1_000, goOn: [], tearDown: '' },
    ...{ kubectl: unused, traffic: unused, [Symbol.asyncDispose]: async () => {} },
  }
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
