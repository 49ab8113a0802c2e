import { describe, expect, onTestFinished, test } from 'vitest'
import { isAgentError } from '../../api/agent-errors.ts'
import { createFakeClock, systemClock } from '../../kube/clock.ts'
import { createSentinelClient, type Death, type VotingNews } from './client.ts'
import { field } from './line.ts'
import { type Script, startScriptedSentinel } from './testing/scripted-sentinel.ts'

async function setUp(script: Script, clock = systemClock) {
  const sentinel = await startScriptedSentinel(script)
  const warnings: string[] = []
  const client = createSentinelClient({
    path: sentinel.path,
    clock,
    log: { warn: (_, message) => warnings.push(message) },
  })
  onTestFinished(async () => {
    client.close()
    await sentinel[Symbol.asyncDispose]()
  })
  return { sentinel, client, warnings }
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'fulfilled',
    (error: unknown) => (isAgentError(error) ? error.code : String(error)),
  )

const spawnRequest = {
  target: { pid: 42, start: 4711 },
  namespaces: 'clone',
  rights: 'Everything',
  cgroup: 'join',
  deadlineMs: 1000,
  log: '/run/with space',
  files: [{ fd: 200, path: '/a:b', mode: 'd' }],
  arguments: ['/bin/x', '', 'ä\n'],
} as const

const guardRequest = {
  ...{ name: 'uid-p', slot: 'default.web-0.0123abcd', term: 4, version: 2, timeoutMs: 5_000 },
  voters: ['API/0123456789abcdef', 'b/fedcba9876543210'],
  next: ['c/0000000000000001'],
  netns: { pid: 10, start: 20 },
  cgroups: ['kubepods/pod1'],
} as const

describe('client of the sentinel', () => {
  test('replies find their requests in any order', async () => {
    const held: (() => void)[] = []
    const { client, sentinel } = await setUp((line, reply) => {
      held.push(() => reply(`continued held_us=${field(line, 'name')} expired=0`))
    })
    const three = ['1', '2', '3'].map(name => client.continue(name))
    await sentinel.request('continue', 2)
    for (const send of held.reverse()) send()
    expect((await Promise.all(three)).map(it => it.heldMicroseconds)).toEqual([1, 2, 3])
  })

  test('what stands is kept for whole milliseconds, and what does not stand is told', async () => {
    const { client, sentinel } = await setUp((line, reply) =>
      reply(field(line, 'name') === 'there' ? 'kept' : 'absent'),
    )
    expect(await client.keep('there', 12.25)).toBe(true)
    expect(await client.keep('gone', 7)).toBe(false)
    expect((await sentinel.request('keep')).fields).toEqual([
      ['name', 'there'],
      ['deadline', '13'],
    ])
  })

  test('a spawn is sent word by word, and its end comes back', async () => {
    const { client, sentinel } = await setUp((_, reply) => reply('exited code=3 signal=0 ms=12 expired=0'))
    const end = await client.spawn(spawnRequest)
    expect(end).toEqual({ code: 3, signal: undefined, milliseconds: 12, expired: false })
    expect((await sentinel.request('spawn')).fields).toEqual([
      ['target', '42'],
      ['start', '4711'],
      ['ns', 'clone'],
      ['cgroup', 'join'],
      ['deadline', '1000'],
      ['log', '/run/with space'],
      ['fd200', '/a:b:d'],
      ['arg', '/bin/x'],
      ['arg', ''],
      ['arg', 'ä\n'],
    ])
  })

  test('an aborted spawn is killed, and not given up before it has ended', async () => {
    let end = () => {}
    const { client, sentinel } = await setUp((line, reply) => {
      if (line.word === 'spawn') end = () => reply('exited code=0 signal=9 ms=1 expired=0')
    })
    const abort = new AbortController()
    let settled = false
    const spawned = client.spawn(spawnRequest, abort.signal).finally(() => {
      settled = true
    })
    const { id } = await sentinel.request('spawn')
    abort.abort(new Error('enough'))
    const kill = await sentinel.request('kill-spawn')
    expect(field(kill, 'spawn')).toBe(String(id))
    expect(settled).toBe(false)
    end()
    await expect(spawned).rejects.toThrow('enough')
  })

  test.each([
    ['refused reason=busy', 'SentinelRefused'],
    ['failed reason=no%20room', 'SentinelRefused'],
    ['gone', 'ProcessGone'],
    ['watched', 'SentinelRefused'],
  ])('%s', async (reply, code) => {
    const { client } = await setUp((_, send) => send(reply))
    expect(await codeOf(client.watch('a', { pid: 1, start: 2 }))).toBe(code)
  })

  test.each([
    ['refused reason=fenced', 'Fenced'],
    ['refused reason=no-answers', 'NoAnswers'],
    ['refused reason=another-slot', 'SentinelRefused'],
  ])('a refusal with a reason of its own: %s', async (reply, code) => {
    const { client } = await setUp((_, send) => send(reply))
    expect(await codeOf(client.guard(guardRequest))).toBe(code)
  })

  test('voters are sent one by one, and the sentinel has their time-out to ask them', async () => {
    const clock = createFakeClock()
    let answer = () => {}
    const { client, sentinel } = await setUp((_, reply) => {
      answer = () => reply('ok')
    }, clock)
    const outcome = codeOf(client.guard(guardRequest))
    expect((await sentinel.request('primary')).fields).toEqual([
      ...[['name', 'uid-p'] as const, ['slot', 'default.web-0.0123abcd'] as const],
      ...[['epoch', '4'] as const, ['timeout', '5000'] as const, ['version', '2'] as const],
      ...[['voter', 'API/0123456789abcdef'] as const, ['voter', 'b/fedcba9876543210'] as const],
      ['next', 'c/0000000000000001'],
      ...[['netns', '10'] as const, ['start', '20'] as const, ['cgroup', 'kubepods/pod1'] as const],
    ])
    await clock.untilSleepers(1)
    await clock.advance(14_999)
    answer()
    expect(await outcome).toBe('fulfilled')
  })

  test('news of voters are heard again after each connection', async () => {
    const { client, sentinel } = await setUp(({ word }, reply) => {
      if (word === 'votes') sentinel.send('- stops name=p epoch=4\n- alone name=p epoch=4\n')
      if (word === 'votes') sentinel.send('- silent slot=s epoch=3\n- serves name=q epoch=1\n')
      if (word === 'votes') sentinel.send('- suspect slot=t epoch=4\n- trust slot=u epoch=5\n')
      reply('ok')
    })
    const news: VotingNews[] = []
    client.onVoting(each => void news.push(each))
    const stop = new AbortController()
    const running = client.run(stop.signal)
    await sentinel.request('votes')
    sentinel.hangUp()
    await sentinel.request('votes', 1)
    await client.tellVotes()
    expect(news.slice(0, 6)).toEqual([
      { type: 'stops', name: 'p', term: 4 },
      { type: 'alone', name: 'p', term: 4 },
      { type: 'silent', slot: 's', term: 3 },
      { type: 'serves', name: 'q', term: 1 },
      { type: 'suspect', slot: 't', term: 4 },
      { type: 'trust', slot: 'u', term: 5 },
    ])
    expect(news.length).toBeGreaterThanOrEqual(12)
    stop.abort()
    await running
  })

  test('a tree that is gone already has been killed', async () => {
    const { client } = await setUp((_, reply) => reply('gone'))
    expect(await client.treeKill({ pid: 1, start: 2 })).toEqual({ count: 0 })
  })

  test('what waits fails when the connection ends, and the next request makes another one', async () => {
    const { client, sentinel } = await setUp((line, reply) => {
      if (line.word === 'hello') reply('ok version=1 pid=7 started_unix_ns=9007199254740993')
    })
    const waiting = codeOf(client.continue('a'))
    await sentinel.request('continue')
    sentinel.hangUp()
    expect(await waiting).toBe('SentinelLost')
    expect(await client.hello()).toEqual({ version: '1', pid: 7, startedUnixNs: 9007199254740993n })
  })

  test('nobody listening is an error of its own', async () => {
    const client = createSentinelClient({
      path: '/nonexistent/sentinel.sock',
      clock: systemClock,
      log: { warn: () => undefined },
    })
    expect(await codeOf(client.hello())).toBe('SentinelUnavailable')
  })

  test('a sentinel that does not answer is not waited for without end', async () => {
    const clock = createFakeClock()
    const { client, sentinel } = await setUp(() => undefined, clock)
    const outcome = codeOf(client.hello())
    await sentinel.request('hello')
    await clock.untilSleepers(1)
    await clock.advance(10_000)
    expect(await outcome).toBe('SentinelUnavailable')
  })

  test('deaths are heard at once, and those of the time without a connection after it', async () => {
    let connections = 0
    const { client, sentinel } = await setUp((line, reply) => {
      if (line.word !== 'watches') return
      connections += 1
      if (connections === 2) sentinel.send('- watch name=b pid=1 start=1 grave=closed died=99\n')
      sentinel.send('- watch name=c pid=3 start=1 grave=ready died=0\n')
      reply('ok')
    })
    const deaths: Death[] = []
    const heard: (() => void)[] = []
    client.onDeath(death => {
      deaths.push(death)
      heard.shift()?.()
    })
    const next = () => new Promise<void>(resolve => heard.push(resolve))
    const stop = new AbortController()
    const running = client.run(stop.signal)
    await sentinel.request('watches')
    const first = next()
    sentinel.send('- died name=a at_unix_ns=5 grave=closed grave_us=300\n')
    await first
    const second = next()
    sentinel.hangUp()
    await second
    expect(deaths).toEqual([
      { name: 'a', unixNs: 5n, grave: 'closed', graveMicroseconds: 300 },
      expect.objectContaining({ name: 'b', unixNs: 99n, grave: 'closed', graveMicroseconds: undefined }),
    ])
    stop.abort()
    await running
  })

  test.each(['nonsense without an id\n', `1 ok ${'x'.repeat(70_000)}`])(
    'a connection on which something else comes is ended: %#',
    async bytes => {
      const { client, sentinel, warnings } = await setUp(() => sentinelSends())
      const sentinelSends = () => sentinel.send(bytes)
      expect(await codeOf(client.continue('a'))).toBe('SentinelLost')
      expect(warnings).toHaveLength(1)
    },
  )

  test('watches are told with their names', async () => {
    const { client, sentinel } = await setUp((_, reply) => {
      sentinel.send('- watch name=a%20b pid=10 start=20 grave=ready died=0\n')
      reply('ok')
    })
    expect(await client.watches()).toEqual([
      { name: 'a b', pid: 10, start: 20, grave: 'ready', diedUnixNs: undefined },
    ])
  })
})
