/**
 * `npm run generate` writes the table of docs/clouds.md from the data that `kubectl understudy doctor` uses; `--check` fails if the table is out of
 * date.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { type Mark, platforms } from '../src/cli/doctor/platforms.ts'

const pagePath = new URL('../docs/clouds.md', import.meta.url)
const [begin, end] = ['<!-- clouds: npm run generate -->', '<!-- end of clouds -->']

const shown = (mark: Mark): string =>
  'label' in mark
    ? `label \`${mark.label}${mark.is === undefined ? '' : `=${mark.is}`}\``
    : `\`${mark.field}\` matches \`${mark.matches.source.replaceAll('\\/', '/')}\``

/** Returns one line for each refusal of each kind of node. */
export function cloudsTable(): string {
  const rows = platforms.flatMap(({ name, shownBy, agents, refuses }) =>
    refuses.map(
      ({ what, cure, source }) =>
        `| ${name} | ${shownBy.map(shown).join(' or ')} | ${what}${agents ? '' : '; no agent can run there'} | ${cure} | [source](${source}) |`,
    ),
  )
  return ['| nodes | known by | may refuse | cure | |', '| --- | --- | --- | --- | --- |', ...rows].join('\n')
}

/** Returns the page with the table inserted. */
export function withClouds(page: string): string {
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from < 0 || to < from) throw new Error(`docs/clouds.md has lost its lines "${begin}" and "${end}"`)
  return `${page.slice(0, from + begin.length)}\n${cloudsTable()}\n${page.slice(to)}`
}

if (import.meta.main) {
  const page = readFileSync(pagePath, 'utf8')
  const wanted = withClouds(page)
  if (!process.argv.includes('--check')) writeFileSync(pagePath, wanted)
  else if (page !== wanted) {
    console.error('docs/clouds.md does not say what src/cli/doctor/platforms.ts says: run `npm run generate`')
    process.exitCode = 1
  }
}
