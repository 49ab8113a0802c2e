import { expect, it } from 'vitest'
import { deriveDiskHalf, diskHalfAnnotation, diskKeyOf, sealDiskHalf } from '../../api/disk-half.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { makeReport } from '../../slot/testing/objects.ts'
import { createKeyParts } from './key-parts.ts'

const agents = Buffer.alloc(32, 1)
const half = deriveDiskHalf(Buffer.alloc(32, 7), 'n1')
const { signal } = new AbortController()

async function scene() {
  const clock = createFakeClock()
  const diskKey = await diskKeyOf(Buffer.alloc(32, 1))
  const state: { text: string | undefined } = { text: undefined }
  const report = () => {
    const made = makeReport('n1', {})
    const annotations = state.text === undefined ? {} : { [diskHalfAnnotation]: state.text }
    return { ...made, metadata: { ...made.metadata, annotations } }
  }
  const parts = createKeyParts({ agentsHalf: async () => agents, diskKey, report, node: 'n1', clock })
  const sealFor = async (seed: number, node = 'n1') => {
    const { publicKey } = await diskKeyOf(Buffer.alloc(32, seed))
    return sealDiskHalf(deriveDiskHalf(Buffer.alloc(32, 7), node), { node, keyId: '0a1b2c3d', publicKey })
  }
  return { clock, state, parts, sealFor }
}

it('D10.disk-half: a node without the half for its present key has no keys, and the error says so', async () => {
  const { state, parts, sealFor } = await scene()
  const missing = { code: 'KeyMissing', message: expect.stringContaining(diskHalfAnnotation) }
  await expect(parts.read(signal)).rejects.toMatchObject(missing)
  // The half for an earlier boot of the node, that of another node, and a forged annotation.
  for (const text of [await sealFor(2), await sealFor(1, 'n2'), 'forged']) {
    state.text = text
    await expect(parts.read(signal)).rejects.toMatchObject(missing)
  }
  state.text = await sealFor(1)
  expect(await parts.read(signal)).toEqual({ agents, node: [new Uint8Array(half)] })
})

it('a half that is known stays known while the report lacks it', async () => {
  const { state, parts, sealFor } = await scene()
  state.text = await sealFor(1)
  await parts.read(signal)
  for (const text of [undefined, 'forged', await sealFor(2)]) {
    state.text = text
    expect((await parts.read(signal)).node).toEqual([new Uint8Array(half)])
  }
})

it('its arrival is waited for, and not for ever', async () => {
  const { clock, state, parts, sealFor } = await scene()
  let ended = 0
  const waits = () => parts.arrival(1_000, signal).then(() => (ended += 1))
  const first = waits()
  await clock.advance(500)
  expect(ended).toBe(0)
  await clock.advance(600)
  await first
  const second = waits()
  state.text = await sealFor(1)
  await clock.advance(100)
  await second
  expect(ended).toBe(2)
})
