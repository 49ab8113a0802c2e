/** Full file systems in which a node keeps memory. */

import { pods } from '../../src/kube/resources.ts'
import { agentPods, agentsNamespace } from '../../zoo/slots.ts'
import { agentStartMs, unnoticedMs } from '../bounds.ts'
import { type Stage, savedThrough, targetNodes } from '../stage.ts'
import { type Nemesis, nothing, plain } from './nemesis.ts'

const memory = '/run/understudy/memory'
const tries = 10
const disk = '/var/lib/understudy/generations'

const sizeIn = (mounts: string): string | undefined =>
  mounts
    .split('\n')
    .find(line => line.split(' ')[1] === memory)
    ?.match(/\bsize=(\d+k)\b/)?.[1]

export const fullMemory: Nemesis = {
  name: 'full-tmpfs',
  proves: 'a node without room for more memory loses none of what it has, and no app',
  family: 'storage',
  aim: async (stage, random) => {
    const { cluster } = stage
    const node = random.of(targetNodes(stage))
    const resize = (size: string) => cluster.inNode(node, ['mount', '-o', `remount,size=${size}`, memory])
    const normal = sizeIn(await cluster.inNode(node, ['cat', '/proc/mounts']))
    if (normal === undefined) throw new Error(`${node} has no ${memory}`)
    return {
      ...plain,
      target: node,
      unsaved: savedThrough(stage, [node]),
      holdMs: random.between(5_000, 15_000),
      strike: async () => {
        for (let left = tries; ; left -= 1)
          try {
            const [, used = ''] = (await cluster.inNode(node, ['df', '--output=used', '-k', memory])).split(
              '\n',
            )
            await resize(`${Number(used) + 16}k`)
            return
          } catch (error) {
            // A generation has come since the look, and does not fit into that size.
            if (left <= 1) throw error
          }
      },
      heal: async () => {
        // After a reboot it is as large as always.
        await resize(normal).catch(nothing)
      },
    }
  },
}

async function restartAgent({ api }: Stage, node: string): Promise<void> {
  const found = (await agentPods(api)).find(({ spec }) => spec?.nodeName === node)
  if (found !== undefined) await api.delete(pods, { namespace: agentsNamespace, name: found.metadata.name })
}

export const fullDisk: Nemesis = {
  name: 'full-disk',
  proves: 'a node whose disk is full keeps memory in its tmpfs, and no app notices',
  family: 'storage',
  aim: async (stage, random) => {
    const { cluster } = stage
    const node = random.of(targetNodes(stage))
    return {
      ...plain,
      target: node,
      // An agent sees another disk only from its start on.
      unsaved: savedThrough(stage, [node]),
      outageMs: unnoticedMs + agentStartMs,
      holdMs: random.between(10_000, 20_000),
      strike: async () => {
        await cluster.inNode(node, [
          ...['sh', '-c'],
          `mkdir -p ${disk} && mount -t tmpfs -o size=1m,mode=700 full ${disk} && head -c 1000000 /dev/zero > ${disk}/.full`,
        ])
        await restartAgent(stage, node)
      },
      heal: async () => {
        await cluster.inNode(node, ['umount', '-l', disk]).catch(nothing)
        await restartAgent(stage, node)
      },
    }
  },
}
