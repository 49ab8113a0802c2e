/** Removes the installation as docs/install.md says: nothing of ours may stay on any node. */
import { describe, expect, it } from 'vitest'
import { deployOperator } from '../../../playground/deploy.ts'
import { nodes, pods } from '../../../src/kube/resources.ts'
import { createProgress } from '../../../src/terminal/progress.ts'
import { specimen } from '../../../zoo/specimens.ts'
import { eventually } from '../../support/eventually.ts'
import { kubectl, needsNodes, playground } from '../lib/cluster.ts'
import { cli } from '../lib/installation.ts'
import { leftovers } from '../lib/leftovers.ts'
import { alone, createWorld } from '../lib/world.ts'

describe.skipIf(needsNodes())('the documented removal', () => {
  it('leaves no memory, key, process, mount, rule, cgroup or label on any node', async () => {
    const cluster = await playground()
    await using world = await createWorld()
    await alone(world)
    const set = await world.createSet('leaving', {
      ...{ replicas: 1, hotBackups: 1, template: specimen('counter').template },
      checkpoint: { interval: '1s' },
    })
    await eventually(async () => {
      const { out } = await cli('-n', world.namespace, 'status', 'leaving', '-o', 'json')
      expect(out).toContain('"protection": "Frozen"')
    }, 120_000)
    // Proves that the search looks in the right places.
    const before = Object.values(await leftovers()).join('\n')
    const settings = ['setting of ours for resets', 'setting of ours for connects']
    for (const kind of ['process', 'mount', 'directory', 'cgroup', 'rules of ours', ...settings])
      expect(before).toContain(kind)

    const refused = await cli('uninstall')
    expect([refused.exitCode, refused.err]).toEqual([
      3,
      expect.stringContaining(`${world.namespace}/leaving`),
    ])

    await kubectl('delete', 'bps', set.name, '--namespace', world.namespace)
    await eventually(async () => {
      const { items } = await world.api.list(pods, { namespace: world.namespace })
      expect(items).toEqual([])
    }, 120_000)
    try {
      const { exitCode, out, err } = await cli('uninstall')
      expect([exitCode, err]).toEqual([0, expect.anything()])
      expect(out).toContain(`nothing of Understudy is left on ${cluster.nodes.length} nodes`)
      expect((await cli('uninstall')).exitCode).toBe(0)
      const nothing = Object.fromEntries(cluster.nodes.map(node => [node, '']))
      expect(await leftovers()).toEqual(nothing)
      await kubectl('delete', '-k', 'deploy/', '--wait', '--timeout=120s')
      expect(await leftovers()).toEqual(nothing)
      const { items } = await world.api.list(nodes, {})
      const marked = items.flatMap(({ metadata }) => Object.keys(metadata.labels ?? {}))
      expect(marked.filter(label => label.startsWith('backup.example.com/'))).toEqual([])
    } finally {
      // For the tests that come after this one.
      await deployOperator(cluster, { progress: createProgress(process.stderr) })
    }
  }, 900_000)
})
