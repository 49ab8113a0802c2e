/** Bundles the page of the dashboard for browsers. */
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'esbuild'

const project = dirname(dirname(fileURLToPath(import.meta.url)))
const directory = 'src/cli/dashboard/page'

export interface BuiltPage {
  readonly script: string
  readonly style: string
  /** Paths of the modules in it, from this project's directory. */
  readonly inputs: readonly string[]
}

/** @throws with esbuild's messages if the build fails */
export async function buildPage(): Promise<BuiltPage> {
  const { outputFiles, metafile } = await build({
    entryPoints: [`${directory}/main.ts`, `${directory}/style.css`],
    absWorkingDir: project,
    outdir: 'page',
    write: false,
    bundle: true,
    platform: 'browser',
    format: 'esm',
    // Browsers with light-dark() of CSS: any since 2024.
    target: ['chrome123', 'firefox120', 'safari17.5'],
    minify: true,
    legalComments: 'none',
    metafile: true,
    logLevel: 'silent',
  })
  const textOf = (ending: string): string => {
    const file = outputFiles.find(({ path }) => path.endsWith(ending))
    if (file === undefined) throw new Error(`esbuild produced no ${ending}`)
    return file.text
  }
  return { script: textOf('main.js'), style: textOf('style.css'), inputs: Object.keys(metafile.inputs) }
}

/** Puts the page into the program that serves it. */
export const embedding = ({ script, style }: BuiltPage): Plugin => ({
  name: 'page',
  setup({ onLoad }) {
    onLoad({ filter: /[/\\]src[/\\]cli[/\\]dashboard[/\\]assets\.ts$/ }, () => ({
      contents: `export const embeddedPage = ${JSON.stringify({ script, style })}`,
      loader: 'js',
    }))
  },
})
