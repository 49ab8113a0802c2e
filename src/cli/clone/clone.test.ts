import { describe, expect, it } from 'vitest'
import type { BackupPodSet } from '../../api/backuppodset.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { KubeError } from '../../kube/errors.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { exitCodes } from '../failure.ts'
import { condition, meta, now, set } from '../testing/objects.ts'
import { makeSession } from '../testing/session.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import { fakeWorld } from '../testing/world.ts'
import { clone, untilCloned } from './clone.ts'

const goal = { name: 'web', pod: 'other-0', timeoutMs: 60_000 }
const cloning = (...words: readonly Parameters<typeof condition>[]): BackupPodSet =>
  set({ conditions: words.map(word => condition(...word)) })

function scene() {
  const clock = createFakeClock({ now })
  const terminal = recordingTerminal()
  const session = makeSession({ clock, terminal })
  const first = { sets: [], pods: [], reports: undefined }
  const world = fakeWorld(clock, first, new AbortController().signal)
  return { clock, session, terminal, world }
}

describe('MP-28: kubectl understudy clone', () => {
  it('waits until the clone has begun with the memory, and is Ready', async () => {
    const { session, terminal, world } = scene()
    const done = untilCloned(session, world, goal)
    const ready = ['Ready', 'True', 'AllInPlace'] as const
    await world.change({ sets: [cloning([...ready])] })
    await world.change({ sets: [cloning(['Cloned', 'False', 'Cloning', 'node a copies'], [...ready])] })
    expect(terminal.written.join('')).not.toContain('runs with')
    await world.change({ sets: [cloning(['Cloned', 'True', 'Cloned'], [...ready])] })
    await done
    expect(terminal.written.join('\n')).toMatch(/web runs with the memory of other-0\n {2}web-p on n1/)
  })

  it('says after --timeout what it waits for', async () => {
    const { clock, session, world } = scene()
    const done = untilCloned(session, world, goal)
    const failed = expect(done).rejects.toMatchObject({
      ...{ exitCode: exitCodes.late, message: expect.stringContaining('CloneNotSaved: not yet') },
    })
    await world.change({ sets: [cloning(['Cloned', 'False', 'CloneNotSaved', 'not yet'])] })
    await clock.advance(60_000)
    await failed
  })

  const made = async (
    owner: 'migratingpods' | 'backuppodsets',
    labels: Readonly<Record<string, string>>,
    spec: object = {},
  ) => {
    const created: unknown[] = []
    const api = fakeApi({
      async get({ plural }, { name }) {
        if (plural === 'pods') return { metadata: { ...meta('web-p'), labels } }
        if (plural !== owner) throw new KubeError('NotFound', name ?? '')
        return set({}, spec)
      },
      async create({ plural }, body) {
        created.push([plural, body])
        throw new KubeError('Unavailable', 'enough')
      },
    })
    const options = { name: 'copy', timeout: 1 }
    const failure = await clone(makeSession({ api }), 'web-p', options).catch((error: unknown) => error)
    return { created, failure }
  }
  const primary = { type: 'primary', 'backup.example.com/backuppodset': 'web' }

  it.each(['migratingpods', 'backuppodsets'] as const)(
    'has the template and the settings of %s',
    async owner => {
      const spec = {
        checkpoint: { interval: '1s', retain: '1h', copies: 3 },
        ...{ failover: { nodeTimeout: '5s', unreadySeconds: 3 }, service: { name: 'web' } },
      }
      expect((await made(owner, primary, spec)).created).toEqual([
        [
          'migratingpods',
          {
            ...{
              apiVersion: 'backup.example.com/v1alpha1',
              kind: 'MigratingPod',
              metadata: { name: 'copy' },
            },
            spec: {
              ...{ template: set().spec.template, clonePod: 'web-p' },
              ...{ checkpoint: { interval: '1s', copies: 3 }, failover: { nodeTimeout: '5s' } },
            },
          },
        ],
      ])
    },
  )

  it('creates nothing for a pod whose memory is not saved', async () => {
    for (const { created, failure } of [
      await made('backuppodsets', {}),
      await made('backuppodsets', { ...primary, type: 'hotbackup' }),
      await made('backuppodsets', primary, { checkpoint: undefined }),
    ]) {
      expect(created).toEqual([])
      expect(failure).toMatchObject({ advice: expect.any(String) })
    }
  })
})
