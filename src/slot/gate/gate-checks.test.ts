import { createServer, type Server } from 'node:net'
import { expect, it, vi } from 'vitest'
import { gateContainerName, gatePort } from '../../api/gate.ts'
import { createFakeClock } from '../../kube/clock.ts'
import type { Pod } from '../../kube/resources.ts'
import { createTerms } from '../act/term.ts'
import { createCheckLimit, createGateChecks } from './gate-checks.ts'
import { type ReachRequest, reach } from './reach.ts'
import { deriveToken, tokenDigest } from './token.ts'

const wakeKey = new Uint8Array(32).fill(1)
const before = new Uint8Array(32).fill(2)
const set = { uid: 'u' }

interface Over {
  readonly gateId?: string
  readonly digest?: string
  readonly flags?: readonly string[]
  readonly type?: string
}

const cold = (name: string, over: Over = {}): Pod => {
  const { gateId = 'g', flags = [], type = 'coldbackup' } = over
  const { digest = tokenDigest(deriveToken(wakeKey, set.uid, name)) } = over
  return {
    metadata: { name, namespace: 'shop', uid: name, resourceVersion: '1', labels: { type } },
    spec: {
      containers: [],
      initContainers: [
        {
          name: gateContainerName,
          restartPolicy: 'Always',
          command: ['/waker', 'wait', '--port', `${gatePort}`, '--token-sha256', digest, ...flags],
        },
      ],
    },
    status: {
      podIP: '10.0.0.1',
      initContainerStatuses: [
        {
          ...{ name: gateContainerName, containerID: gateId, image: '', imageID: '', ready: false },
          ...{ restartCount: 0, started: false, state: { running: {} } },
        },
      ],
    },
  }
}

function onStage(answers: (request: ReachRequest) => Promise<string | undefined>) {
  const clock = createFakeClock()
  const asked: ReachRequest[] = []
  const changed: number[] = []
  const terms = createTerms()
  const life = new AbortController()
  const checks = createGateChecks({
    ...{ setUid: set.uid, clock, wakeKeys: [wakeKey, before] },
    ...{ limit: createCheckLimit(), terms, life: life.signal },
    reach: request => {
      asked.push(request)
      return answers(request)
    },
    changed: afterMs => changed.push(afterMs),
  })
  const term = terms.begin()
  const look = async (...pods: Pod[]) => {
    const problems = checks.look(pods)
    // Lets the pending checks end.
    await new Promise(resolve => setImmediate(resolve))
    return problems
  }
  return { clock, asked, changed, terms, term, life, look }
}

it('R20: a gate that cannot be reached is told after the second try, and no more once it can', async () => {
  let why: string | undefined = 'no answer within 2000 ms'
  const { clock, asked, changed, look } = onStage(async () => why)
  expect(await look(cold('c'))).toEqual([])
  expect(asked).toMatchObject([{ host: '10.0.0.1', port: gatePort }])
  // A single failure is not reported, but leads to an early retry.
  expect(await look(cold('c'))).toEqual([])
  expect([asked.length, changed[0]]).toEqual([1, 5000])
  // A timer that fires early is set again.
  await clock.advance(4_999)
  await look(cold('c'))
  expect([asked.length, changed.at(-1)]).toEqual([1, 1])
  await clock.advance(1)
  await look(cold('c'))
  expect(await look(cold('c'))).toEqual(['the gate of c cannot be reached: no answer within 2000 ms'])
  why = undefined
  await clock.advance(5_000)
  await look(cold('c'))
  expect(await look(cold('c'))).toEqual([])
  expect([asked.length, changed.at(-1)]).toEqual([3, 0])
})

it('R20: one that answers is tried again after an hour, and when it is another gate', async () => {
  const { clock, asked, changed, look } = onStage(async () => undefined)
  for (let i = 0; i < 3; i += 1) await look(cold('c'))
  expect([asked.length, changed.length]).toEqual([1, 0])
  await look(cold('c', { gateId: 'another' }))
  expect(asked).toHaveLength(2)
  await clock.advance(3_600_000)
  await look(cold('c', { gateId: 'another' }))
  expect(asked).toHaveLength(3)
})

it('R20: a gate of somebody else’s token is told at once, and not asked', async () => {
  const { asked, look } = onStage(async () => undefined)
  const digest = tokenDigest(deriveToken(wakeKey, 'the set before', 'c'))
  expect(await look(cold('c', { digest }))).toEqual(['the gate of c accepts no token of this set'])
  // Also if its node could open it: the agent uses the same token.
  expect(await look(cold('c', { digest, flags: ['--socket', '/s'] }))).toHaveLength(1)
  expect(asked).toEqual([])
})

it('D10.wake-key: of the key before it is tried as others are, and of one that is no more it is told', async () => {
  const { asked, look } = onStage(async () => undefined)
  const of = (fill: number) => tokenDigest(deriveToken(new Uint8Array(32).fill(fill), set.uid, 'c'))
  expect(await look(cold('c', { digest: of(2) }))).toEqual([])
  expect(asked).toHaveLength(1)
  expect(await look(cold('c', { digest: of(3) }))).toEqual(['the gate of c accepts no token of this set'])
})

it('nobody else is tried: who has another door, and who is no cold backup any more', async () => {
  const { asked, look } = onStage(async () => undefined)
  expect(await look(cold('m', { flags: ['--socket', '/s'] }), cold('h', { type: 'hotbackup' }))).toEqual([])
  expect(asked).toEqual([])
})

it('few are tried at once, and the others soon', async () => {
  const { asked, changed, look, term } = onStage(() => new Promise(() => {}))
  await look(...Array.from({ length: 20 }, (_, i) => cold(`c${i}`)))
  expect([asked.length, changed.length]).toEqual([8, 1])
  term.stopLeading()
  await look(cold('another'))
  expect(asked).toHaveLength(8)
})

it('a check that ends after its set or its term says nothing, and the next term tries every gate', async () => {
  const answers: ((why: string) => void)[] = []
  const { changed, asked, look, terms, term, life } = onStage(
    () => new Promise(resolve => answers.push(resolve)),
  )
  const answer = async () => {
    answers.at(-1)?.('no answer')
    await new Promise(resolve => setImmediate(resolve))
  }
  await look(cold('c'))
  term.stopLeading()
  await answer()
  terms.begin()
  await look(cold('c'))
  expect([asked.length, changed]).toEqual([2, []])
  life.abort()
  await answer()
  expect(changed).toEqual([])
})

const listening = (server: Server) =>
  new Promise<number>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' ? (address?.port ?? 0) : 0)
    })
  })

it('who listens is reached without a word, and who does not, or does not answer, is not', async () => {
  const heard: string[] = []
  const ended = vi.fn()
  const server = createServer(socket => {
    socket.on('error', ended).on('close', ended)
    socket.on('data', data => heard.push(data.toString()))
  })
  const port = await listening(server)
  const { signal } = new AbortController()
  const request = { host: '127.0.0.1', port, timeoutMs: 10_000, signal }
  expect(await reach(request)).toBeUndefined()
  await vi.waitFor(() => expect(ended).toHaveBeenCalled())
  expect(heard).toEqual([])
  await new Promise(resolve => server.close(resolve))
  expect(await reach(request)).toMatch(/ECONNREFUSED/)
  const clock = createFakeClock()
  // No host has this address: whatever the network answers, the connection fails.
  const silent = reach({ ...request, host: '192.0.2.1', clock })
  await clock.advance(10_000)
  expect(await silent).toBeDefined()
  const leaving = new AbortController()
  const left = reach({ ...request, host: '192.0.2.1', signal: leaving.signal })
  leaving.abort(new Error('the term is over'))
  await expect(left).rejects.toThrow('the term is over')
})
