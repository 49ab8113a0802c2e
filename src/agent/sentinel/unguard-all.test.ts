import { expect, onTestFinished, test } from 'vitest'
import { systemClock as clock } from '../../kube/clock.ts'
import { silentLog as log } from '../../kube/log.ts'
import { createSentinelClient } from './client.ts'
import { field } from './line.ts'
import { type Script, startScriptedSentinel } from './testing/scripted-sentinel.ts'
import { type UnguardOptions, unguardAll } from './unguard-all.ts'

const options = (over: Partial<UnguardOptions> = {}): UnguardOptions => ({
  fateOf: async () => 'GoesOn',
  end: async () => undefined,
  onWait: () => undefined,
  clock,
  signal: AbortSignal.timeout(10_000),
  ...over,
})

async function unguardedOf(
  script: (tell: (text: string) => void) => Script,
  over: Partial<UnguardOptions> = {},
): Promise<unknown[]> {
  const sentinel = await startScriptedSentinel((line, reply) => script(sentinel.send)(line, reply))
  const client = createSentinelClient({ path: sentinel.path, clock, log })
  onTestFinished(async () => {
    client.close()
    await sentinel[Symbol.asyncDispose]()
  })
  await unguardAll(client, options(over))
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

test('a pod stays guarded while its Lease names voters, and one that has lost its slot ends before it could resume', async () => {
  const steps: string[] = []
  const fates = { p: 'Waits', q: 'Ends', r: 'Ends' } as const
  const unguarded = await unguardedOf(
    tell =>
      ({ word }, reply) => {
        if (word === 'votes')
          tell('- serves name=p epoch=1\n- stops name=q epoch=2\n- serves name=r epoch=2\n')
        reply('ok')
      },
    {
      fateOf: async uid =>
        uid === 'p' && steps.includes('waits for p')
          ? 'GoesOn'
          : (fates[uid as keyof typeof fates] ?? 'Ends'),
      end: async uid => void steps.push(`ends ${uid}`),
      onWait: uids => void steps.push(`waits for ${uids}`),
    },
  )
  expect(steps).toEqual(['ends q', 'waits for p'])
  expect(unguarded).toEqual(['q', 'r', 'p'])
})

test('a sentinel of an earlier version guards none', async () => {
  expect(await unguardedOf(() => (_, reply) => reply('refused reason=unknown-verb'))).toEqual([])
})

test('nor does one that does not run', async () => {
  const client = createSentinelClient({ path: '/nonexistent/sentinel.sock', clock, log })
  await expect(unguardAll(client, options())).resolves.toBeUndefined()
})
