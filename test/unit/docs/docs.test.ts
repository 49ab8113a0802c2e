/** The documents name files and headings that exist. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const root = new URL('../../..', import.meta.url).pathname
const documents = ['.', 'docs', 'docs/adr', 'src/kube', 'bench']
  .flatMap(directory =>
    readdirSync(join(root, directory))
      .filter(name => name.endsWith('.md'))
      .map(name => join(root, directory, name)),
  )
  .map(path => ({ path, name: relative(root, path), text: readFileSync(path, 'utf8') }))

/** Computes anchors of headings as GitHub does. */
const anchorsIn = (text: string) =>
  [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\- _]/gu, '')
      .replaceAll(' ', '-'),
  )

test.each(documents)('links of $name lead somewhere', ({ path, text }) => {
  const broken: string[] = []
  for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue
    const [file = '', anchor] = target.split('#')
    const linked = file === '' ? path : join(dirname(path), file)
    if (!existsSync(linked)) broken.push(target)
    else if (anchor !== undefined && !anchorsIn(readFileSync(linked, 'utf8')).includes(anchor))
      broken.push(target)
  }
  expect(broken).toEqual([])
})

test('the list of decisions is complete and has their titles', () => {
  const index = documents.find(({ name }) => name === 'docs/adr/README.md')?.text ?? ''
  const missing = documents
    .filter(({ name }) => /^docs\/adr\/\d/.test(name))
    .map(({ name, text }) => {
      const [, number, title] = /^# (\d+)\. (.*)/.exec(text) ?? []
      return `| [${number}](${name.slice('docs/adr/'.length)}) | ${title} |`
    })
    .filter(row => !index.includes(row))
  expect(missing).toEqual([])
})

test('the files that the lifecycle of a pass names exist', () => {
  const { text = '' } = documents.find(({ name }) => name === 'docs/lifecycle.md') ?? {}
  const named = [...text.matchAll(/`([\w/.-]+\.(?:ts|c))`/g)].map(([, file = '']) => file)
  expect(named.length).toBeGreaterThan(20)
  const places = ['.', 'src/backuppodset', 'src/kube'].map(place => join(root, place))
  expect(named.filter(file => !places.some(place => existsSync(join(place, file))))).toEqual([])
})

const textOf = (document: string) => documents.find(({ name }) => name === document)?.text ?? ''
const firstYaml = (text: string): unknown => parse(/```yaml\n(.*?)```/s.exec(text)?.[1] ?? '')
const sample = (name: string): unknown => parse(readFileSync(join(root, 'samples', name), 'utf8'))

test('the object of docs/object.md is the sample of the paper', () => {
  expect(firstYaml(textOf('docs/object.md'))).toEqual(sample('paper.yaml'))
})

test("the README's object is a part of the sample with memory", () => {
  const object = firstYaml(textOf('README.md'))
  expect(object).toMatchObject({ kind: 'BackupPodSet' })
  expect(sample('memory.yaml')).toMatchObject(object as object)
})

test('the README has at most 130 lines', () => {
  expect(textOf('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(130)
})

test('the README leads to every page of docs', () => {
  const linked = [...textOf('README.md').matchAll(/\]\((docs\/[^)#]+)/g)].map(([, target]) => target)
  const pages = documents.map(({ name }) => name).filter(name => /^docs\/[^/]+$/.test(name))
  expect(pages.filter(name => !linked.includes(name))).toEqual([])
})

test.each(documents)('npm knows the commands of $name', ({ text }) => {
  const { scripts } = parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object }
  const named = [...text.matchAll(/\bnpm run (?:-\S+ )*([a-z][a-z-]*)/g)].map(([, script = '']) => script)
  expect(named.filter(script => !(script in scripts))).toEqual([])
})
