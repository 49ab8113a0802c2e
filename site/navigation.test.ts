import { expect, test } from 'vitest'
import { listedSources, type NavigationGroup, navigation, pagesOf } from './navigation.ts'
import { markdownFiles, menuOf, readDocuments, readKinds } from './sources.ts'

const groups: readonly NavigationGroup[] = [
  { title: 'Use', pages: ['README.md', 'docs/use.md'] },
  { title: 'Design', pages: ['docs/adr/README.md'], folder: { title: 'Decisions', path: 'docs/adr/' } },
]
const files = ['README.md', 'docs/use.md', 'docs/adr/README.md', 'docs/adr/0002-b.md', 'docs/adr/0001-a.md']

test('D23.navigation: every page of docs is in the navigation, and every entry has a page', () => {
  expect(() => listedSources(navigation, markdownFiles())).not.toThrow()
  expect(markdownFiles().length).toBeGreaterThan(100)
})

test('D23.navigation: a folder has its pages by name, after those that are listed', () => {
  expect(listedSources(groups, files)).toEqual([
    'README.md',
    'docs/use.md',
    'docs/adr/README.md',
    'docs/adr/0001-a.md',
    'docs/adr/0002-b.md',
  ])
  expect(groups.map(group => pagesOf(group, files).length)).toEqual([2, 3])
})

test.each([
  ['a page that is not listed', [...files, 'docs/new.md'], 'docs/new.md is not in the navigation'],
  ['an entry without a page', files.slice(1), 'README.md is in the navigation, and no such file exists'],
])('D23.navigation: %s is refused', (_, sources, message) => {
  expect(() => listedSources(groups, sources)).toThrow(message)
})

test('D23.navigation: a page that is listed twice is refused', () => {
  const twice = [...groups, { title: 'Again', pages: ['docs/use.md'] }]
  expect(() => listedSources(twice, files)).toThrow('docs/use.md is twice in the navigation')
})

test('D23.navigation: the menu leads to each document and kind, by a title of its own', async () => {
  const [documents, kinds] = await Promise.all([readDocuments(), readKinds()])
  const pages = menuOf(documents, kinds).flatMap(group => [...group.pages, ...(group.folder?.pages ?? [])])
  expect(pages.length).toBe(documents.length + kinds.length)
  const titles = pages.map(({ title }) => title)
  expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual([])
})
