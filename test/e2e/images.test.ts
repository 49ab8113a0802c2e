import { execFile } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { describe, expect, it } from 'vitest'
import { ensureImages } from '../../images/build.ts'
import { parseImageList } from '../../playground/images-on-nodes.ts'
import { needsNodes, playground } from './lib/cluster.ts'

/** A namespace of containerd that nothing else uses. */
const namespace = 'archives-of-images'

describe.skipIf(needsNodes())('D19.archives: archives of images', () => {
  it('load into the containerd of a node in the way of `kind load image-archive`, under their whole name', async () => {
    const cluster = await playground()
    const ctr = (args: readonly string[], archive?: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const [program = '', ...rest] = cluster.argvOnNode('n1', ['ctr', `--namespace=${namespace}`, ...args])
        const child = execFile(program, rest, (error, stdout) => (error ? reject(error) : resolve(stdout)))
        if (archive !== undefined && child.stdin)
          pipeline(createReadStream(archive), child.stdin).catch(reject)
      })
    const images = await ensureImages(['operator', 'waker', 'agent'])
    try {
      for (const { path } of Object.values(images))
        await ctr(['images', 'import', '--all-platforms', '--digests', '--snapshotter=overlayfs', '-'], path)
      const listed = parseImageList(await ctr(['images', 'list']))
      for (const { ref, digest } of Object.values(images))
        expect(listed).toContainEqual({ name: ref, digest })
    } finally {
      for (const { name } of parseImageList(await ctr(['images', 'list'])))
        await ctr(['images', 'remove', name])
    }
  }, 300_000)
})
