/** The reference of the packed kit, made from the declarations and comments that its compiler emits. */
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { parseTypeScript } from '../lint/parse.ts'
import { exportsOf } from './exports.ts'

export interface Chapter {
  /** Name of the file, without extension. */
  readonly module: string
  /** Its first comment as Markdown; empty: it has none. */
  readonly about: string
  readonly entries: readonly Entry[]
}

export interface Entry {
  readonly name: string
  readonly isFunction: boolean
  /** Its doc comment as Markdown; empty: it has none. */
  readonly about: string
  /** Its declaration, with the comments of its members. */
  readonly declaration: string
}

/** Returns the public names of an entry point, by module and in the order of their declarations. */
export async function chaptersOf(entryPoint: string): Promise<readonly Chapter[]> {
  const files = new Map<string, Set<string>>()
  for (const [name, file] of await exportsOf(entryPoint))
    files.set(file, (files.get(file) ?? new Set()).add(name))
  return Promise.all(
    [...files].map(async ([file, names]) => chapterOf(file, await readFile(file, 'utf8'), names)),
  )
}

function chapterOf(file: string, source: string, names: ReadonlySet<string>): Chapter {
  const { program, comments } = parseTypeScript(file, source)
  /** The doc comment that ends where a statement begins. */
  const aboutOf = (start: number) => {
    const comment = comments.findLast(each => each.end <= start)
    const isIts = comment?.value.startsWith('*') && source.slice(comment.end, start).trim() === ''
    return isIts ? textOf(comment?.value ?? '') : ''
  }
  const entries = program.body.flatMap((statement): readonly Entry[] => {
    if (statement.type !== 'ExportNamedDeclaration' || !statement.declaration) return []
    const { declaration, start, end } = statement
    const id = declaration.type === 'VariableDeclaration' ? declaration.declarations[0]?.id : declaration.id
    if (id?.type !== 'Identifier' || !names.has(id.name)) return []
    return [
      {
        name: id.name,
        isFunction: declaration.type === 'TSDeclareFunction',
        about: aboutOf(start),
        declaration: source.slice(start, end).replace(/^export (?:declare )?/u, ''),
      },
    ]
  })
  const [first] = program.body
  const module = basename(file).replace(/\.d\.ts$/u, '')
  return { module, about: first?.type === 'ImportDeclaration' ? aboutOf(first.start) : '', entries }
}

/** The text of a doc comment; its tags become sentences. */
const textOf = (comment: string): string =>
  comment
    .slice(1)
    .replace(/^[ \t]*\* ?/gmu, '')
    .replace(/\s*@returns /gu, '\n\nReturns ')
    .replace(/\s*@throws /gu, '\n\nThrows ')
    .replace(/\s*@param (\w+)/gu, '\n\n`$1`:')
    .trim()

/** Draws the page. */
export async function apiPage(dist: string): Promise<string> {
  const [main, testing] = await Promise.all([
    chaptersOf(join(dist, 'index.d.ts')),
    chaptersOf(join(dist, 'testing/index.d.ts')),
  ])
  return `# @understudy/kube\n\n${contents(main)}\n# @understudy/kube/testing\n\n${contents(testing)}`
}

const contents = (chapters: readonly Chapter[]): string =>
  `${chapters.map(({ module }) => `[${module}](#${module})`).join(' · ')}\n\n${chapters.map(drawn).join('')}`

const drawn = ({ module, about, entries }: Chapter): string =>
  [
    `## ${module}`,
    about,
    ...entries.flatMap(entry => [`### ${entry.name}`, entry.about, `\`\`\`ts\n${entry.declaration}\n\`\`\``]),
  ]
    .filter(text => text !== '')
    .map(text => `${text}\n\n`)
    .join('')
