import { expect, onTestFinished, test } from 'vitest'
import { systemClock as clock } from '../../kube/clock.ts'
import { silentLog as log } from '../../kube/log.ts'
import { createSentinelClient } from './client.ts'
import { field } from './line.ts'
import { type Script, startScriptedSentinel } from './testing/scripted-sentinel.ts'
import { unguardAll } from './unguard-all.ts'

async function unguardedOf(script: (tell: (text: string) => void) => Script): Promise<unknown[]> {
  const sentinel = await startScriptedSentinel((line, reply) => script(sentinel.send)(line, reply))
  const client = createSentinelClient({ path: sentinel.path, clock, log })
  onTestFinished(async () => {
    client.close()
    await sentinel[Symbol.asyncDispose]()
  })
  await unguardAll(client, AbortSignal.timeout(10_000))
  return sentinel.requests.filter(({ word }) => word === 'unprimary').map(line => field(line, 'name'))
}

test('no pod stays guarded on a node that agents leave, whether it serves or not', async () => {
  const unguarded = await unguardedOf(tell => ({ word }, reply) => {
    if (word === 'votes')
      tell('- serves name=p epoch=1\n- stops name=q epoch=2\n- silent slot=default.web-0.0123abcd epoch=3\n')
    reply('ok')
  })
  expect(unguarded).toEqual(['p', 'q'])
})

test('a sentinel of an earlier version guards none', async () => {
  expect(await unguardedOf(() => (_, reply) => reply('refused reason=unknown-verb'))).toEqual([])
})

test('nor does one that does not run', async () => {
  const client = createSentinelClient({ path: '/nonexistent/sentinel.sock', clock, log })
  await expect(unguardAll(client, AbortSignal.timeout(10_000))).resolves.toBeUndefined()
})
