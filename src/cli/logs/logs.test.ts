import { describe, expect, test } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import { KubeError } from '../../kube/errors.ts'
import type { KubeObject } from '../../kube/object.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { meta, now, pod, report, set, slotReport } from '../testing/objects.ts'
import { makeSession } from '../testing/session.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import { logs } from './logs.ts'

const places = { operatorNamespace: 'understudy-system', agentNamespace: 'understudy-agents' }
const at = (seconds: number) => new Date(now + seconds * 1000).toISOString().replace('Z', '000000Z')
const line = (seconds: number, msg: string) =>
  `${at(seconds)} ${JSON.stringify({ level: 'info', msg, slot: 'shop/web-0' })}`
const installed = (name: string, nodeName: string) => ({
  ...{ metadata: { ...meta(name), namespace: 'understudy-agents' }, spec: { nodeName, containers: [] } },
})

/** A cluster with one operator, and agents on n1 (a pod of the set), n2 (which keeps its memory) and n3 (neither). */
function cluster(texts: Record<string, string[]>) {
  const clock = createFakeClock({ now })
  const stop = new AbortController()
  const terminal = recordingTerminal()
  const asked: string[] = []
  const list = (items: KubeObject[]) => ({ metadata: { resourceVersion: '1' }, items })
  const api = fakeApi({
    get: async () => set(),
    list: async ({ plural }, { labelSelector = '' }) => {
      if (plural === 'nodereports')
        return list([report('n1'), report('n2', { slots: [slotReport({})] }), report('n3')])
      if (labelSelector.endsWith('=operator')) return list([installed('operator', 'n9')])
      if (labelSelector.endsWith('=agent'))
        return list(['n1', 'n2', 'n3'].map(node => installed(`agent-${node}`, node)))
      return list([pod('web-p', 'primary')])
    },
    request: async (_method, path, { query = {} } = {}) => {
      const name = path.split('/').at(-2) ?? ''
      asked.push(`${name} ${query['sinceTime']}`)
      const text = texts[name]?.shift()
      if (text === 'away') throw new KubeError('Unavailable', 'the API server is away')
      return { status: 200, body: text ?? '' }
    },
  })
  const session = makeSession({ api, clock, terminal, signal: stop.signal })
  return { clock, stop, terminal, asked, session }
}

describe('D19.logs: logs of a set', () => {
  test('come from the operator and the agents of its nodes, by time', async () => {
    const { terminal, session, asked } = cluster({
      operator: [`${line(-5, 'first')}\n${line(-1, 'third')}\n`],
      'agent-n2': [`${line(-3, 'second \u001b[2J')}\n`],
      'agent-n1': [
        `${at(-2)} ${JSON.stringify({ level: 'info', msg: 'of another', slot: 'shop/other-0' })}\n`,
      ],
    })
    await logs(session, 'web', { ...places, since: 60 })
    expect(terminal.written.map(each => each.split('  info  ')[1])).toEqual([
      'first slot=shop/web-0',
      'second \u001b[2J slot=shop/web-0',
      'third slot=shop/web-0',
    ])
    expect(asked.map(each => each.split(' ')[0]).sort()).toEqual(['agent-n1', 'agent-n2', 'operator'])
  })

  test('followed, each line comes once, and an API server that is away is told and waited for', async () => {
    const { clock, stop, terminal, session } = cluster({
      operator: [line(-5, 'old'), 'away', `${line(-5, 'old')}\n${line(1, 'new')}`, line(1, 'new')],
    })
    const done = logs(session, 'web', { ...places, since: 60, follow: true })
    for (const _ of [1, 2, 3]) {
      await clock.untilSleepers(1)
      await clock.advance(1_000)
    }
    await clock.untilSleepers(1)
    expect(terminal.written.map(each => / (old|new) /.exec(each)?.[1])).toEqual(['old', 'new'])
    expect(terminal.told).toEqual(['lost the API server, retrying: the API server is away'])
    stop.abort(new Error('Ctrl-C'))
    await done
  })
})
