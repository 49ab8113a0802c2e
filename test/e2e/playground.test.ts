/**
 * Tests of the playground itself: a power cut is real, and nothing is left of a cluster that was taken down or never
 * finished. They use a small cluster of their own, so that no other test sees it.
 */
import { readFile } from 'node:fs/promises'
import { get } from 'node:https'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { type Cluster, down, up } from '../../playground/cluster.ts'
import { holdingsOf } from '../../playground/leftovers.ts'
import { identify } from '../../playground/process.ts'
import { nodeServices } from '../../playground/render/node.ts'
import { statusOf } from '../../playground/status.ts'
import type { Progress } from '../../src/terminal/progress.ts'

const name = 'e2e-own'
const nothing = { processes: 0, mounts: 0, namespaces: 0, links: 0, cgroups: 0 }

const connects = (host: string, port: number): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect({ host, port, timeout: 2_000 })
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
    socket.on('timeout', () => resolve(false)).on('close', () => socket.destroy())
  })

/** Whether a process answers there, whatever it says: connections are accepted by the kernel. */
const answers = (host: string, port: number): Promise<boolean> =>
  new Promise(resolve => {
    const request = get({ host, port, rejectUnauthorized: false, timeout: 5_000 }, response => {
      response.resume()
      resolve(true)
    })
    request.on('error', () => resolve(false)).on('timeout', () => request.destroy(new Error('no answer')))
  })

/**
 * Returns the pids of the daemons of all nodes. A node's other processes come and go at any time: kube-proxy runs
 * iptables, the kubelet runs plugins.
 */
async function daemonsOf({ plan }: Cluster): Promise<readonly number[]> {
  const names = new Set(plan.nodes.flatMap(node => nodeServices(plan, node).map(service => service.name)))
  const found: number[] = []
  for (const pid of (await holdingsOf(name)).processes) {
    const command = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')
    if (names.has(command.trim())) found.push(pid)
  }
  return found
}

describe.skipIf(process.env['UNDERSTUDY_USE_CURRENT_CLUSTER'] === '1')('the playground', () => {
  afterEach(() => down(name))

  it('comes up, loses a node and gets it back, and leaves nothing when it is taken down', async () => {
    const cluster: Cluster = await up({ name, nodes: 2 })
    expect(await statusOf(name)).toMatchObject({
      state: 'up',
      machines: [{}, { ready: true }, { ready: true }],
    })
    const again = await up({ name })
    expect(again.nodes).toEqual(['n1', 'n2'])

    const [, node] = cluster.plan.nodes
    if (node === undefined) throw new Error('no second node')
    const kubeletPort = 10_250
    expect(await connects(node.address, kubeletPort)).toBe(true)
    const before = await holdingsOf(name)
    await cluster.killNode('n2')
    expect(await connects(node.address, kubeletPort)).toBe(false)
    expect(await cluster.hasPower('n2')).toBe(false)
    const after = await holdingsOf(name)
    expect(after.namespaces).not.toContain(node.label)
    expect(after.cgroups.some(path => path.endsWith(`/${node.label}`))).toBe(false)
    const gone = before.processes.filter(pid => !after.processes.includes(pid))
    expect(await Promise.all(gone.map(identify))).toEqual(gone.map(() => undefined))

    await cluster.startNode('n2')
    expect(await connects(node.address, kubeletPort)).toBe(true)

    const daemons = await daemonsOf(cluster)
    expect(daemons.length).toBeGreaterThanOrEqual(6)
    await cluster.cutNode('n2')
    expect(await connects(node.address, kubeletPort)).toBe(false)
    await cluster.joinNode('n2')
    expect(await connects(node.address, kubeletPort)).toBe(true)
    await cluster.pauseNode('n2')
    expect(await answers(node.address, kubeletPort)).toBe(false)
    await cluster.resumeNode('n2')
    expect(await answers(node.address, kubeletPort)).toBe(true)
    expect(await daemonsOf(cluster)).toEqual(daemons)
    expect(await statusOf(name)).toMatchObject({ state: 'up' })

    await down(name)
    expect(await statusOf(name)).toMatchObject({ state: 'down', counts: nothing })
  })

  it.each(['certificates, configuration, machines', 'API server'])(
    'leaves nothing when it is interrupted at "%s"',
    async title => {
      const stop = new AbortController()
      const interrupting: Progress = {
        async step(step, work) {
          const result = work({ detail: () => {}, of: () => {}, expect: () => {} })
          // At once, so that the interrupt happens in the middle of the step.
          if (step === title) stop.abort(new Error('Ctrl-C'))
          return result
        },
        wait: (_step, work) => work(),
      }
      await expect(up({ name, nodes: 1, progress: interrupting, signal: stop.signal })).rejects.toThrow()
      expect(await statusOf(name)).toMatchObject({ state: 'down', counts: nothing })
    },
  )

  it('says what to do when a node is asked for that is not there', async () => {
    const cluster = await up({ name, nodes: 1 })
    await expect(cluster.killNode('n7')).rejects.toThrow(/no node n7, only n1/)
  })
})
