/** Key rotation between the creation of a cold backup and its waking, with the real gate. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { buildWaker } from '../../../init-waker/build.ts'
import { gateContainerName, gateDigestOf } from '../../api/gate.ts'
import { labels } from '../../api/labels.ts'
import { systemClock } from '../../kube/clock.ts'
import type { Pod } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { openGate } from '../../slot/gate/open-gate.ts'
import { deriveToken, tokenDigest, type WakeKeys, wakeKeyId } from '../../slot/gate/token.ts'
import { wake } from '../../slot/gate/wake.ts'
import { makeSet } from '../testing/snapshots.ts'
import { renderPod } from './render.ts'

const older = Buffer.alloc(32, 1)
const newer = Buffer.alloc(32, 2)
const set = makeSet({ replicas: 1, hotBackups: 0, coldBackups: 1 })

/** A cold backup that an operator with these keys created, waiting at its gate. */
function coldOf(wakeKeys: WakeKeys): Pod {
  const { metadata, spec } = renderPod(
    set,
    { type: 'create', name: 'web-c', kind: 'coldbackup', strategy: 'spread', role: undefined },
    { wakerImage: 'waker', wakeKeys },
  )
  const { labels: its = {} } = metadata ?? {}
  const [gate] = spec?.initContainers ?? []
  return {
    metadata: { name: 'web-c', namespace: 'default', uid: 'u', resourceVersion: '1', labels: { ...its } },
    spec: { containers: [], initContainers: gate ? [{ ...gate, name: gateContainerName }] : [] },
    status: {
      podIP: '127.0.0.1',
      initContainerStatuses: [
        {
          ...{ name: gateContainerName, containerID: 'g', image: '', imageID: '', ready: false },
          ...{ restartCount: 0, started: false, state: { running: {} } },
        },
      ],
    },
  }
}

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

describe('D10.wake-key: a key that is exchanged', () => {
  let waker: string
  beforeAll(async () => {
    waker = await buildWaker()
  })

  /** Starts that pod's gate as its kubelet would, and lets an operator with other keys try to open it. */
  async function gateOf(pod: Pod) {
    const digest = gateDigestOf(pod) ?? ''
    const child = spawn(waker, ['wait', '--port', '0', '--token-sha256', digest], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const exit = once(child, 'exit')
    cleanups.push(() => {
      child.kill('SIGKILL')
      return exit
    })
    const lines = createInterface({ input: child.stderr })
    const [line] = (await once(lines, 'line')) as [string]
    const { port } = JSON.parse(line) as { port: number }
    const pods = createStore<Pod>()
    pods.replace([pod], 1n)
    return {
      open: (wakeKeys: WakeKeys) =>
        openGate(
          {
            ...{ ownerUid: set.uid, to: 'primary', timeoutMs: 10_000, signal: new AbortController().signal },
            pod: { namespace: 'default', name: 'web-c', uid: 'u' },
          },
          {
            ...{ pods, wakeKeys, clock: systemClock, read: async () => pod },
            wake: request => wake({ ...request, host: '127.0.0.1', port }),
          },
        ),
    }
  }

  it('wakes what was made under the one of before, as long as that is kept', async () => {
    const pod = coldOf([older])
    expect(pod.metadata.labels?.[labels.wakeKey]).toBe(wakeKeyId(older))
    const gate = await gateOf(pod)
    expect(await gate.open([newer, older])).toEqual({ type: 'opened', openedGate: 'g' })
  })

  it('wakes nothing of one that was taken away, and a pod that is made now is of the new one', async () => {
    const gate = await gateOf(coldOf([older]))
    expect(await gate.open([newer])).toMatchObject({ type: 'failed', why: expect.stringContaining('denied') })
    const pod = coldOf([newer, older])
    expect(pod.metadata.labels?.[labels.wakeKey]).toBe(wakeKeyId(newer))
    expect(gateDigestOf(pod)).toBe(tokenDigest(deriveToken(newer, set.uid, 'web-c')))
    const next = await gateOf(pod)
    // An attacker with the stolen old key.
    expect(await next.open([older])).toMatchObject({ type: 'failed', why: expect.stringContaining('denied') })
    expect(await next.open([newer])).toEqual({ type: 'opened', openedGate: 'g' })
  })
})
