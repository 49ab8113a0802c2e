import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { type ProcFs, refOf } from '../container/process.ts'

/**
 * Runs a command in the namespaces of the host, through an installed `nsrun`.
 *
 * @param command the program, by its path on the host, and its arguments.
 * @returns the exit code or signal, and the output; also when the program goes to the background. @throws the reason of
 *   the signal.
 */
export async function runOnHost(
  programs: string,
  command: readonly string[],
  { fs, signal }: { readonly fs: ProcFs; readonly signal: AbortSignal },
): Promise<string> {
  const host = await refOf(fs, fs.host)
  return new Promise((resolve, reject) => {
    const child = spawn(join(programs, 'nsrun'), [`${host.pid}:${host.start}`, 'host', '--', ...command], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
      signal,
      cwd: '/',
    })
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', chunk => {
        said = (said + String(chunk)).slice(-1000)
      })
    child.once('error', reject)
    // Not 'close': a program in the background may keep the pipes open.
    child.once('exit', (code, by) => {
      child.stdout.destroy()
      child.stderr.destroy()
      resolve(`exit ${code ?? by}; ${said.trim()}`)
    })
  })
}
