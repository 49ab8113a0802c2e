import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { AgentError } from '../../api/agent-errors.ts'
import { annotations } from '../../api/labels.ts'
import type { FakeCluster } from '../testing/fake/cluster.ts'
import type { FakeMemory } from '../testing/fake/memory.ts'
import { atFirst, podOf, useTwoNodes } from '../testing/fake/two-nodes.ts'

describe('the agents of two nodes', () => {
  let cluster: FakeCluster
  let a: FakeMemory
  let b: FakeMemory
  const { start } = useTwoNodes(made => {
    ;({ cluster, a, b } = made)
  })

  describe('D7.pace: the time for which a primary has stood still', () => {
    const dumpsStay = async (count: number) => {
      await sleep(800)
      expect(a.counts.dumps).toBe(count)
    }
    const ask = (word: string) => {
      const pod = podOf('p', 'primary')
      cluster.put('a', {
        ...pod,
        metadata: { ...pod.metadata, annotations: { [annotations.checkpointRequested]: word } },
      })
    }
    const saved = () => {
      const [slot] = cluster.reports.get('a')?.status?.slots ?? []
      return { generation: slot?.generation, answered: slot?.answeredRequest }
    }
    const shows = (generation: number, answered?: string) =>
      vi.waitFor(() => expect(saved()).toEqual({ generation, answered }))

    beforeEach(async () => {
      // At 2 percent each freeze takes up 50 s.
      a.frozenSeconds = 1
      await start('a', a)
      await start('b', b)
      await shows(1)
    })

    it('counts where its duty begins again, and less of it once it may stand still for longer', async () => {
      cluster.setLease({ ...atFirst(), epoch: 2 })
      await dumpsStay(1)
      cluster.writePolicy({ maxFreezePercent: 50 })
      await vi.waitFor(() => expect(a.counts.dumps).toBeGreaterThan(1))
    })

    it('counts after a failure: of what is asked for one is on loan, and no other', async () => {
      a.atStop = () => {
        a.atStop = () => undefined
        throw new AgentError('DumpFailed', 'once')
      }
      ask('one')
      await shows(2, 'one')
      expect(a.counts.dumps).toBe(3)
      ask('two')
      await dumpsStay(3)
      expect(saved().answered).toBe('one')
    })
  })
})
