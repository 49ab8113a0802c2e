/** Removes the installation as docs/install.md says: nothing of ours may stay on any node. */
import { describe, expect, it } from 'vitest'
import { deployOperator } from '../../../playground/deploy.ts'
import { nodes, pods } from '../../../src/kube/resources.ts'
import { createProgress } from '../../../src/terminal/progress.ts'
import { specimen } from '../../../zoo/specimens.ts'
import { eventually } from '../../support/eventually.ts'
import { kubectl, needsNodes, playground } from '../lib/cluster.ts'
import { cli } from '../lib/installation.ts'
import { alone, createWorld } from '../lib/world.ts'

/**
 * Lists everything of ours on a node, one a line: processes, mounts, directories, cgroups, a setting, and rules in the
 * network namespaces of the node and of its pods. Labels in the image store are not included.
 */
const lookOn = (label: string) => `
  for process in /proc/[0-9]*; do
    program=$(readlink $process/exe) || continue
    case $program in /run/understudy/*|/var/lib/understudy/*) echo "process $program";; esac
  done
  grep -o -E ' (/run|/var/lib)/understudy[^ ]* .* - tmpfs .*' /proc/1/mountinfo | sed 's/^/mount/'
  for directory in /run/understudy /var/lib/understudy; do
    if [ -e $directory ]; then echo "directory $directory"; fi
  done
  seen=''
  for net in /proc/[0-9]*/ns/net /run/netns/*; do
    id=$(stat -L -c %i $net 2> /dev/null) || continue
    case " $seen " in *" $id "*) continue;; esac
    seen="$seen $id"
    # Its last process may have ended since.
    tables=$(nsenter --net=$net nft list tables) || { ! [ -e $net ] || echo "rules in $net cannot be read"; continue; }
    if echo "$tables" | grep -q -w understudy; then echo "rules of ours in $net"; fi
  done
  # The kernel's own value is 10.
  if [ "$(cat /proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close)" = 0 ]; then echo 'setting of ours'; fi
  # Cgroups are the machine's, on which there may be other clusters.
  find /sys/fs/cgroup -maxdepth 4 -type d -path '*/${label}/*' -name understudy 2> /dev/null | sed 's/^/cgroup /'
  true`

async function leftovers(): Promise<Readonly<Record<string, string>>> {
  const cluster = await playground()
  const found = await Promise.all(
    cluster.plan.nodes.map(
      async ({ name, label }) =>
        [name, (await cluster.inNode(name, ['sh', '-c', lookOn(label)])).trim()] as const,
    ),
  )
  return Object.fromEntries(found)
}

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
    for (const kind of ['process', 'mount', 'directory', 'cgroup', 'rules of ours', 'setting of ours'])
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
