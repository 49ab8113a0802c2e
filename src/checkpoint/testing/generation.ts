import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { SlotKey } from '../../api/slot-key.ts'
import type { Manifest } from '../manifest.ts'

export const slotKey: SlotKey = { namespace: 'shop', name: 'carts-0', incarnation: '0a1b2c3d' }

export function manifestOf(
  generation: number,
  more: Partial<Omit<Manifest, 'files' | 'bytes'>> = {},
): Omit<Manifest, 'files' | 'bytes'> {
  return {
    version: 1,
    slot: slotKey,
    epoch: 1,
    generation,
    source: { pod: 'carts-0123456789ab', podUid: '8f2f5e9c-7d0e-4f57-a3a6-2b8d8f2c7f01', node: 'node-a' },
    takenAt: '2030-01-01T00:00:00.000000Z',
    frozenSeconds: 0.012,
    skewSeconds: 0.0004,
    criu: '4.2.1',
    kernel: '6.12.0',
    architecture: 'x86_64',
    restoreHash: '0123456789abcdef',
    containers: [
      {
        name: 'app',
        imageId: 'sha256:abc',
        rootPid: 1,
        stdio: { 0: '/dev/null', 1: 'pipe:[1]', 2: 'pipe:[2]' },
        credentials: [
          {
            pid: 1,
            tid: 1,
            uids: { real: 0, effective: 0, saved: 0, filesystem: 0 },
            gids: { real: 0, effective: 0, saved: 0, filesystem: 0 },
            groups: [],
            capabilities: {
              inheritable: '0000000000000000',
              permitted: '00000000a80425fb',
              effective: '00000000a80425fb',
              bounding: '00000000a80425fb',
              ambient: '0000000000000000',
            },
            secureBits: 0,
            noNewPrivileges: true,
            seccomp: 'filter',
            dumpable: 1,
          },
        ],
        memoryBytes: 4096,
        frozenMicroseconds: 9000,
      },
    ],
    volumes: ['cache'],
    ...more,
  }
}

/** Writes files below a directory; paths may have directories. */
export async function putFiles(dir: string, files: Readonly<Record<string, Uint8Array | string>>) {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(dir, path)), { recursive: true })
    await writeFile(join(dir, path), content)
  }
}
