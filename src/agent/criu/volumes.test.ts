import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { start } from '../../../init-waker/testing/process.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { refOf } from '../container/process.ts'
import { cannotDump, podsDirectoryAt, startTestNode, type TestNode } from '../testing/node.ts'
import type { LocatedPod } from './memory-driver.ts'
import { planSaves } from './saves.ts'

const uid = '11111111-2222-3333-4444-555555555555'
const emptyDirs = `pods/${uid}/volumes/kubernetes.io~empty-dir`

/** A container's root in its own mount namespace, with volume `mem` at /whole and its subPath `a` at /part. */
const containerScript = (volume: string) => `set -e
r=$(mktemp -d); mount -t tmpfs root $r; mkdir $r/upper $r/work $r/lower $r/merged
mkdir $r/lower/proc $r/lower/old $r/lower/usr $r/lower/whole $r/lower/part
for each in bin lib lib64 sbin; do ln -s usr/$each $r/lower/$each; done
mount -t overlay -o lowerdir=$r/lower,upperdir=$r/upper,workdir=$r/work root $r/merged
cd $r/merged
mount --bind /usr usr; mount --bind ${volume} whole; mount --bind ${volume}/a part; mount --rbind /proc proc
pivot_root . old; umount -l old; echo ready
exec setpriv --pdeathsig KILL sleep infinity`

/** Changes that an unprivileged application may make in its own volume. */
const tenantScript = (secret: string) => `chmod 777 /whole /whole/a
exec setpriv --reuid 1000 --regid 1000 --clear-groups --no-new-privs --bounding-set -all sh -ec '
d=/whole/${emptyDirs}; mkdir -p $d; mv /whole/a $d/x; rmdir $d/x; ln -s ${secret} $d/x'`

describe.skipIf(cannotDump !== undefined)(`volumes of a hostile pod ${cannotDump ?? ''}`, () => {
  let base: string
  let node: TestNode
  let host: Awaited<ReturnType<typeof start>>
  let container: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    base = await mkdtemp('/tmp/volumes-')
    const volume = `${base}/kubelet/${emptyDirs}/mem`
    await mkdir(volume, { recursive: true })
    await mkdir(`${base}/secret`)
    await writeFile(`${base}/secret/node-key`, 'of the node')
    const mount = `mount -t tmpfs mem ${volume} && mkdir ${volume}/a && echo ready`
    const inNamespace = ['--mount', '--propagation', 'private', 'sh', '-c']
    host = await start('unshare', [
      ...inNamespace,
      `${mount} && exec setpriv --pdeathsig KILL sleep infinity`,
    ])
    await eventually(() => expect(host.stdout(), host.stderr()).toBe('ready\n'))
    const pods = await podsDirectoryAt(`${base}/kubelet/pods`)
    node = await startTestNode({ proc: '/proc', host: host.pid, pods })
    const enter = ['-t', String(host.pid), '-m', 'unshare', ...inNamespace]
    container = await start('nsenter', [...enter, containerScript(volume)])
    await eventually(() => expect(container.stdout(), container.stderr()).toBe('ready\n'))
  })
  afterAll(async () => {
    await container?.[Symbol.asyncDispose]()
    await node?.dispose()
    await host?.[Symbol.asyncDispose]()
    await rm(base, { recursive: true, force: true })
  })

  it('D10.volume-names: a subPath that is moved and removed names no directory of the node', async () => {
    const { fs, files } = node.dependencies
    execFileSync('nsenter', ['-t', String(container.pid), '-m', 'sh', '-c', tenantScript(`${base}/secret`)])
    const mounts = await readFile(`/proc/${container.pid}/mountinfo`, 'utf8')
    expect(mounts).toContain(`/${emptyDirs}/x//deleted /part `)
    const init = await refOf(fs, container.pid)
    const target = { name: 'app', containerId: 'containerd://app', imageId: '' }
    const pod: LocatedPod = {
      pod: { namespace: 'default', name: 'p', uid, ip: '', containers: [target], promoted: false },
      containers: [{ ...target, init, app: init, depth: 1, cgroups: [] }],
    }
    const out = await mkdtemp('/dev/shm/volumes-')
    try {
      const saves = await planSaves({ fs }, pod, out)
      const volumes = saves.flatMap(each => (each.kind === 'volume' ? [each] : []))
      expect(volumes.map(({ name, directory }) => [name, directory])).toEqual([
        ['mem', `${base}/kubelet/${emptyDirs}/mem`],
      ])
      const run = { deadlineMs: 10_000, scratch: out, signal: AbortSignal.timeout(30_000) }
      for (const volume of volumes) {
        await files.save(volume, run)
        const archived = execFileSync('tar', ['-xOf', volume.archive], { encoding: 'utf8' })
        expect(archived).not.toContain('of the node')
        await files.apply(volume, run)
      }
      expect(await readdir(join(base, 'secret'))).toEqual(['node-key'])
    } finally {
      await rm(out, { recursive: true })
    }
  })
})
