import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { complaints } from './criu.ts'

/** Returns how CRIU ended, and the errors that it logged. */
export async function explain(
  work: string,
  name: string,
  end: { readonly code: number | undefined; readonly signal: number | undefined },
): Promise<string> {
  const said = await complaintsOf(work, [name, 'output'])
  return `${end.signal === undefined ? `exit code ${end.code}` : `signal ${end.signal}`}; ${said}`
}

/** Returns the last errors of CRIU's log, or else the end of its standard error. */
export async function complaintsOf(work: string, names: readonly [string, string]): Promise<string> {
  const logs = await Promise.all(names.map(file => endOf(join(work, file)).catch(() => '')))
  const [own = '', output = ''] = logs
  return complaints(own) || output.trim().split('\n').slice(-3).join('; ').slice(0, 400)
}

/** Limits the part that is read: the log contains names that the app chooses, as many as it likes. */
const lastBytes = 64 * 1024

async function endOf(path: string): Promise<string> {
  await using file = await open(path)
  const { size } = await file.stat()
  const { buffer, bytesRead } = await file.read({
    ...{ buffer: Buffer.alloc(Math.min(size, lastBytes)) },
    position: Math.max(0, size - lastBytes),
  })
  return buffer.toString('utf8', 0, bytesRead)
}
