import { run } from '../playground/exec.ts'

const root = new URL('../', import.meta.url)

/** Returns the commit of the work tree, with a plus sign if files differ from it; `unknown` outside of a repository. */
export async function commitOf(signal: AbortSignal): Promise<string> {
  const told = run(['git', 'describe', '--always', '--exclude=*', '--dirty=+'], {
    cwd: root.pathname,
    signal,
  })
  return (await told.catch(() => 'unknown')).trim()
}
