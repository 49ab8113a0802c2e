/** The page of a kind. */
import { escapeHtml } from '../html.ts'
import type { Section } from '../search.ts'
import type { Field } from './fields.ts'
import { apiVersionOf, type KindVersion } from './kinds.ts'

export const anchorOf = ({ path }: Pick<Field, 'path'>): string => (path === '' ? 'object' : path)

/** A field with more fields below it than this has a table of its own, such as the template of pods. */
const manyFields = 200

/** Returns the paths of the fields that begin a table: the longest one that contains a field names its table. */
export function tablesOf(
  fields: readonly Field[],
): readonly { readonly path: string; readonly fields: readonly Field[] }[] {
  const depthOf = (path: string) => (path === '' ? 0 : path.split('.').length)
  const countBelow = (path: string) => fields.filter(field => isWithin(field.path, path)).length
  const heads = ['', ...fields.map(({ path }) => path)]
    .filter((path, index, all) => all.indexOf(path) === index)
    .filter(path => depthOf(path) < 2 || (depthOf(path) === 2 && countBelow(path) > manyFields))
    .filter(path => depthOf(path) === 0 || countBelow(path) > 1)
  const headOf = (field: Field) => heads.findLast(head => isWithin(field.path, head)) ?? ''
  return heads.map(path => ({ path, fields: fields.filter(field => headOf(field) === path) }))
}

const isWithin = (path: string, head: string): boolean =>
  head === '' || path === head || path.startsWith(`${head}.`) || path.startsWith(`${head}[`)

export function kindPage(kind: KindVersion): string {
  const { fields, source, plural, isNamespaced, fieldSelectors } = kind
  const selectors = fieldSelectors.map(each => `<code>${escapeHtml(each)}</code>`).join(', ')
  return [
    `<h1 id="top">${escapeHtml(kind.kind)}</h1>`,
    `<p><code>${escapeHtml(apiVersionOf(kind))}</code>, ${isNamespaced ? 'in a namespace' : 'in the whole cluster'}. `,
    `<code>kubectl explain ${escapeHtml(plural)}.${escapeHtml(kind.group)}</code> has the same in a terminal. `,
    `This page is made from <code>${escapeHtml(source)}</code>.`,
    selectors === '' ? '' : ` Field selectors: ${selectors}.`,
    '</p>\n',
    ...tablesOf(fields).map(({ path, fields: own }) => table(kind.kind, path, own)),
  ].join('')
}

function table(kind: string, path: string, fields: readonly Field[]): string {
  const name = path === '' ? kind : path
  return [
    `<h2 id="fields-of-${escapeHtml(name)}">${escapeHtml(name)}</h2>\n<table class="fields">`,
    '<thead><tr><th scope="col">Field</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead><tbody>\n',
    ...fields.map(field => row(kind, field)),
    '</tbody></table>\n',
  ].join('')
}

function row(kind: string, field: Field): string {
  const anchor = escapeHtml(anchorOf(field))
  const name = escapeHtml(field.path === '' ? kind : field.path)
  const code = (text: string) => `<code>${escapeHtml(text)}</code>`
  const facts = [
    ...(field.default === undefined ? [] : [`<li>Default: ${code(field.default)}</li>`]),
    ...(field.enum.length === 0 ? [] : [`<li>One of ${field.enum.map(code).join(', ')}</li>`]),
    ...field.constraints.map(text => `<li>${escapeHtml(text)}</li>`),
    ...field.rules.map(({ rule, message }) => `<li>Rule: ${escapeHtml(message)}<br>${code(rule)}</li>`),
  ]
  return [
    `<tr id="${anchor}"><th scope="row"><a href="#${anchor}"><code>${name.replace(/\./g, '.<wbr>')}</code></a></th>`,
    `<td>${escapeHtml(field.type)}${field.isRequired ? ', required' : ''}</td>`,
    `<td>${field.description === '' ? '' : `<p>${escapeHtml(field.description)}</p>`}`,
    facts.length === 0 ? '' : `<ul>${facts.join('')}</ul>`,
    '</td></tr>\n',
  ].join('')
}

/** Returns an entry of the search for each field, except for the many below one: those of a pod would hide all others. */
export function kindSections(kind: KindVersion): readonly Section[] {
  const [, ...others] = tablesOf(kind.fields)
  const many = others.map(({ path }) => path).filter(path => path.includes('.'))
  return kind.fields
    .filter(({ path }) => !many.some(head => path !== head && isWithin(path, head)))
    .map(field => ({
      anchor: anchorOf(field),
      title: field.path,
      text: [field.description, ...field.enum, ...field.rules.map(({ message }) => message)].join(' '),
    }))
}
