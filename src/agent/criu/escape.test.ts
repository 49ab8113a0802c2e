import { afterEach, describe, expect, it } from 'vitest'
import { cannotUnshare, type Started, start } from '../../../init-waker/testing/process.ts'
import { hostProcFs } from '../container/process.ts'
import { escapes } from './escape.ts'

const fs = { ...hostProcFs, host: process.pid }
const started: Started[] = []
afterEach(async () => {
  for (const each of started.splice(0)) await each[Symbol.asyncDispose]()
})

/** Starts a process with its own mounts and namespaces, made by `unshare`. */
async function run(script: string): Promise<number> {
  const each = await start('sh', ['-c', `${script}; echo ready; exec sleep 1000`])
  started.push(each)
  await expect.poll(() => each.stdout()).toContain('ready')
  return each.pid
}
const inMounts = (before: string, inside = 'true') =>
  run(`${before}; exec 0<&-; exec unshare --mount sh -c '${inside}; echo ready; exec sleep 1000'`)

describe.skipIf(cannotUnshare !== undefined)(
  `D10.forged: what restored processes hold ${cannotUnshare ?? ''}`,
  () => {
    it('files, directories and mappings of its own mounts are its own', async () => {
      const pid = await inMounts('true', 'exec 5</etc/hostname; cd /etc')
      expect(await escapes(fs, pid, pid)).toEqual([])
    })

    it('an open file of other mounts', async () => {
      const pid = await inMounts('exec 5</etc/hostname')
      expect(await escapes(fs, pid, pid)).toEqual(['an open file that is not in the container'])
    })

    it('a directory of the node from which everything can be reached', async () => {
      const pid = await inMounts('exec 5</')
      expect(await escapes(fs, pid, pid)).toEqual(['an open file that is not in the container'])
    })

    it('a file and a directory of a /proc below its own', async () => {
      const own = 'mount -t proc proc /proc'
      const of = async (inside: string) => {
        const pid = await inMounts('true', `${inside}; ${own}`)
        return escapes(fs, pid, pid)
      }
      expect(await of('true')).toEqual([])
      expect(await of('exec 5</proc/self/mem')).toEqual(['an open file that is not in the container'])
      expect(await of('exec 5</proc/kallsyms')).toEqual(['an open file that is not in the container'])
      expect(await of('cd /proc/self')).toEqual(['its cwd is not in the container'])
    })

    it('mounts that the container has not', async () => {
      const [hold, app] = [await inMounts('true'), await inMounts('true', 'mount -t tmpfs more /mnt')]
      expect(await escapes(fs, app, hold)).toEqual(['1 mounts that the container does not have'])
    })

    it('a /proc of its own is one, with what the runtime has laid over parts of it, and no more', async () => {
      const over = (...parts: string[]) =>
        parts.map(part => `mount --bind /proc/${part} /proc/${part}`).join('; ')
      const hold = await inMounts('true', over('sys', 'bus'))
      const own = await inMounts('true', `mount -t proc proc /proc; ${over('sys', 'bus')}`)
      expect(await escapes(fs, own, hold)).toEqual([])
      const more = await inMounts('true', `mount -t proc proc /proc; ${over('sys', 'bus', 'irq')}`)
      expect(await escapes(fs, more, hold)).toEqual(['1 mounts that the container does not have'])
    })

    it('a part of another /proc', async () => {
      const hold = await inMounts('true', 'mount --bind /proc/sys /proc/sys')
      const app = await inMounts(
        'true',
        'mount -t proc other /mnt; mount -t proc own /proc; mount --bind /mnt/sys /proc/sys; umount /mnt',
      )
      expect(await escapes(fs, app, hold)).toEqual(['1 mounts that the container does not have'])
    })

    it('another network', async () => {
      const [hold, app] = [
        await run('true'),
        await run('true; exec unshare --net sh -c "echo ready; exec sleep 1000"'),
      ]
      expect(await escapes(fs, app, hold)).toContain('another net namespace')
    })
  },
)
