/** Files that browsers load beside the pages. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'

const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#1f5fbf"/><rect x="3" y="3" width="7" height="7" fill="#fff"/><rect x="6" y="6" width="7" height="7" fill="none" stroke="#fff"/></svg>
`

/**
 * Bundles script and style into the folder `site` of a directory.
 *
 * @throws with esbuild's messages if the build fails
 */
export async function writeAssets(directory: string): Promise<void> {
  const outdir = join(directory, 'site')
  const shared = {
    absWorkingDir: import.meta.dirname,
    outdir,
    bundle: true,
    platform: 'browser' as const,
    // Browsers with light-dark() of CSS: any since 2024.
    target: ['chrome123', 'firefox120', 'safari17.5'],
    minify: true,
    legalComments: 'none' as const,
    logLevel: 'silent' as const,
  }
  await mkdir(outdir, { recursive: true })
  await Promise.all([
    build({ ...shared, entryPoints: ['browser/main.ts', 'browser/style.css'], format: 'esm' }),
    // Runs before the first paint: it is no module, so that the page does not flash in the other colours.
    build({ ...shared, entryPoints: ['browser/colours.ts'], format: 'iife' }),
    writeFile(join(outdir, 'icon.svg'), icon),
  ])
}
