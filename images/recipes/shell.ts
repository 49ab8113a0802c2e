import type { PackageTree } from '../../build/debian.ts'
import type { Entry } from '../../build/entry.ts'
import { withLibraries } from '../../build/tree.ts'

// Commands that people type into `kubectl exec`; every other name works as `busybox NAME`.
const APPLETS = [
  'cat',
  'env',
  'grep',
  'head',
  'hostname',
  'id',
  'kill',
  'ls',
  'ps',
  'sh',
  'sleep',
  'tail',
  'wget',
]

/** A shell and the commands of `kubectl exec`, from the package `busybox-static`, for the sample images. */
export async function shell(tree: PackageTree): Promise<Entry[]> {
  return [
    ...(await withLibraries(tree, [{ path: '/usr/bin/busybox' }])),
    ...APPLETS.map((name): Entry => ({ type: 'symlink', path: `/usr/bin/${name}`, target: 'busybox' })),
    { type: 'directory', path: '/tmp', mode: 0o1777 },
  ]
}
