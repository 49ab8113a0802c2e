import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Creates a full pipe without a reader: a write to `writeEnd` blocks. */
export function fillPipe(): Disposable & { readonly writeEnd: number } {
  const directory = mkdtempSync(join(tmpdir(), 'pipe-'))
  const path = join(directory, 'fifo')
  execFileSync('mkfifo', [path])
  const filler = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  try {
    for (;;) writeSync(filler, Buffer.alloc(4096))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
  }
  // Opened again: blocking mode belongs to the open file description, which dup() would share.
  const writeEnd = openSync(path, constants.O_RDWR)
  return {
    writeEnd,
    [Symbol.dispose]() {
      closeSync(writeEnd)
      closeSync(filler)
      rmSync(directory, { recursive: true })
    },
  }
}
