import { beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../test/support/eventually.ts'
import { buildWaker } from './build.ts'
import { buildApp } from './testing/build.ts'
import { otherToken, startGate, wakeAs } from './testing/gate.ts'
import { connect, exchange } from './testing/peer.ts'
import { cannotUnshare, catchableSignals, childrenOf, inNamespaceOf, stateOf } from './testing/process.ts'

const ending = [1, 2, 3, 15]

describe.each([
  { as: 'PID 1', pidNamespace: true, reason: cannotUnshare },
  { as: 'an ordinary process', pidNamespace: false, reason: undefined },
])(`wait as $as`, ({ pidNamespace, reason }) => {
  let waker: string
  beforeAll(async () => {
    waker = await buildWaker()
  })

  test.for(ending)('signal %i ends it with 128 + the signal', async (number, { skip }) => {
    if (reason) skip(reason)
    await using gate = await startGate(waker, [], { pidNamespace })
    process.kill(gate.pid, number)
    expect(await gate.exit).toBe(128 + number)
  })

  test('every other signal is of no effect', async ({ skip }) => {
    if (reason) skip(reason)
    await using gate = await startGate(waker, [], { pidNamespace })
    for (const number of catchableSignals) if (!ending.includes(number)) process.kill(gate.pid, number)
    expect(await exchange(gate.port, wakeAs('primary', otherToken))).toContain('denied')
    expect(await exchange(gate.port, wakeAs('primary'))).toContain('woken')
    expect(await gate.exit).toBe(0)
  })

  test('SIGKILL ends it', async ({ skip }) => {
    if (reason) skip(reason)
    await using gate = await startGate(waker, [], { pidNamespace })
    process.kill(gate.pid, 'SIGKILL')
    expect(await gate.exit).toBe(137)
  })

  test('it ends at once while all its places are taken', async ({ skip }) => {
    if (reason) skip(reason)
    await using gate = await startGate(waker, [], { pidNamespace })
    const peers = await Promise.all(Array.from({ length: 200 }, () => connect(gate.port)))
    process.kill(gate.pid, 'SIGTERM')
    // Long before the peers' own deadlines, so only the signal can have ended the gate.
    expect(await gate.exit).toBe(143)
    for (const peer of peers) peer.socket.destroy()
  })
})

describe.skipIf(cannotUnshare !== undefined)(`wait as PID 1 ${cannotUnshare ?? ''}`, () => {
  test('it reaps what is orphaned in its namespace', async () => {
    const [waker, app] = await Promise.all([buildWaker(), buildApp()])
    await using gate = await startGate(waker, [], { pidNamespace: true })
    await inNamespaceOf(gate.pid, [app, 'orphan', 'stubborn'])
    const [orphan] = await eventually(() => {
      const children = childrenOf(gate.pid)
      expect(children).toHaveLength(1)
      return children
    })
    if (orphan === undefined) throw new Error('no orphan')
    process.kill(orphan, 'SIGKILL')
    await eventually(() => expect(stateOf(orphan)).toBeUndefined())
    expect(await exchange(gate.port, wakeAs('primary'))).toContain('woken')
  })
})
