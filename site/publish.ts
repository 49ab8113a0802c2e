/** Adds a version to a site: a folder of its own, the list of versions, and a root that leads to the newest. */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { exists } from '../build/cache.ts'
import { type BuildOptions, buildVersion } from './build.ts'
import { parseVersions, unreleased, type Versions, withVersion } from './versions.ts'

/**
 * Builds a version into a site. The folders of other versions stay as they are.
 *
 * @returns the version's folder
 * @throws Error if the site has this release already: readers may have links into it
 */
export async function publish(site: string, options: BuildOptions): Promise<string> {
  const { version } = options
  const folder = join(site, version)
  if (version !== unreleased && (await exists(folder)))
    throw new Error(`${folder} exists: remove it to build this version again`)
  const list = join(site, 'versions.json')
  const known = (await exists(list)) ? parseVersions(await readFile(list, 'utf8')) : []
  const work = join(site, `.${version}.new`)
  await rm(work, { recursive: true, force: true })
  await mkdir(work, { recursive: true })
  try {
    await buildVersion(work, options)
    await rm(folder, { recursive: true, force: true })
    await rename(work, folder)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
  const versions = withVersion(known, version)
  await replace(list, `${JSON.stringify(versions, undefined, 2)}\n`)
  await replace(join(site, 'index.html'), rootPage(versions))
  return folder
}

/** A server may be reading the file. */
async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text)
  await rename(`${path}.new`, path)
}

const rootPage = ({ newest, versions }: Versions): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<meta http-equiv="refresh" content="0; url=${newest}/index.html">
<title>Understudy</title>
</head>
<body>
<main>
<h1>Understudy</h1>
<p>Versions of this site:</p>
<ul>
${versions.map(version => `<li><a href="${version}/index.html">${version}</a></li>`).join('\n')}
</ul>
</main>
</body>
</html>
`
