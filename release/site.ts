/** The documentation site of a release, as an archive. */
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../build/run.ts'
import { takeTree } from '../build/tree.ts'
import { writeLayer } from '../images/layer.ts'
import { project } from './contents.ts'

/**
 * Adds the site to a release: a root with this one version. The archive is the same each time.
 *
 * @throws Error if a page is missing in the navigation, or a link leads nowhere
 */
export async function addSite(directory: string, version: string, signal?: AbortSignal): Promise<void> {
  const work = join(directory, '.site')
  await mkdir(work)
  try {
    const words = ['run', '--silent', 'site', '--', '--version', `v${version}`, '--into', join(work, 'site')]
    await run('npm', words, { cwd: project, ...(signal && { signal }) })
    const files = await takeTree({ root: work, packages: [] }, '/site')
    await writeLayer(join(directory, `understudy-site_v${version}.tar.gz`), files, signal)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}
