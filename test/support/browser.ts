/** Debian's Chromium, without a window. */
import { execFile } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Browser, chromium } from 'playwright-core'
import { exists } from '../../build/cache.ts'

const run = promisify(execFile)
const path = '/usr/bin/chromium-headless-shell'
const packages = ['chromium-headless-shell', 'fonts-dejavu-core']
/** Another program may be installing packages, s. */
const lockTimeout = 300

export interface RunningBrowser extends AsyncDisposable {
  readonly browser: Browser
}

/**
 * Starts the browser. With root, installs it first if it is missing. As root, Chromium would raise its own priority above that of
 * everything that a test or bench runs beside it, so that it loses the right to.
 *
 * @throws Error that says what to install
 */
export async function startBrowser(): Promise<RunningBrowser> {
  if (!(await exists(path))) await install()
  const directory = await mkdtemp(join(tmpdir(), 'understudy-browser-'))
  const remove = () => rm(directory, { recursive: true, force: true })
  try {
    const program = join(directory, 'chromium')
    await writeFile(
      program,
      `#!/bin/sh\n${process.getuid?.() === 0 ? `exec setpriv --bounding-set=-sys_nice ${path} "$@"` : `exec ${path} "$@"`}\n`,
    )
    await chmod(program, 0o755)
    const browser = await chromium.launch({ executablePath: program, args: ['--disable-gpu'] })
    return {
      browser,
      async [Symbol.asyncDispose]() {
        await browser.close()
        await remove()
      },
    }
  } catch (error) {
    await remove()
    throw error
  }
}

async function install(): Promise<void> {
  if (process.getuid?.() !== 0)
    throw new Error(`Chromium is missing: install it with \`apt-get install ${packages.join(' ')}\``)
  const apt = ['-y', '-o', `DPkg::Lock::Timeout=${lockTimeout}`]
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  await run('apt-get', [...apt, 'update'], { env })
  await run('apt-get', [...apt, 'install', '--no-install-recommends', ...packages], { env })
}
