/** The whole site, as it is built. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { linksIn } from './dead-links.ts'
import { addressOf } from './links.ts'
import { publish } from './publish.ts'
import { markdownFiles, project } from './sources.ts'

const run = promisify(execFile)
const site = mkdtempSync(join(tmpdir(), 'understudy-site-test-'))
const old = join(site, 'v0.0.9')

beforeAll(async () => {
  await mkdir(old)
  await writeFile(join(old, 'index.html'), 'old')
  await writeFile(join(site, 'versions.json'), JSON.stringify({ newest: 'v0.0.9', versions: ['v0.0.9'] }))
  await publish(site, { version: 'v1.2.3' })
})
afterAll(() => rm(site, { recursive: true, force: true }))

const page = (address: string) => readFileSync(join(site, 'v1.2.3', address), 'utf8')
const pages = () =>
  readdirSync(join(site, 'v1.2.3'), { recursive: true, encoding: 'utf8' }).filter(name =>
    name.endsWith('.html'),
  )

test('D23.versions: a version is added beside those that the site has', async () => {
  expect(await readFile(join(old, 'index.html'), 'utf8')).toBe('old')
  expect(JSON.parse(await readFile(join(site, 'versions.json'), 'utf8'))).toEqual({
    newest: 'v1.2.3',
    versions: ['v1.2.3', 'v0.0.9'],
  })
  expect(readdirSync(site).toSorted()).toEqual(['index.html', 'v0.0.9', 'v1.2.3', 'versions.json'])
  expect(await readFile(join(site, 'index.html'), 'utf8')).toContain('url=v1.2.3/index.html')
})

test('D23.versions: a release that the site has is not built again', async () => {
  const before = (await stat(join(site, 'v1.2.3'))).ino
  await expect(publish(site, { version: 'v1.2.3' })).rejects.toThrow('remove it to build this version again')
  expect((await stat(join(site, 'v1.2.3'))).ino).toBe(before)
})

test('D23.navigation: each document has a page with its title', () => {
  const all = markdownFiles().filter(source => source.startsWith('docs/'))
  expect(all.filter(source => !page(addressOf(source)).includes('<h1'))).toEqual([])
  expect(page('docs/runbooks.html')).toContain('<title>Runbooks · Understudy</title>')
})

test('D23.runbooks: the command of the documents leads each alert to a heading of the site', async () => {
  const document = await readFile(join(project, 'docs/health-rules.md'), 'utf8')
  const expression =
    /sed -E '([^']*)'/.exec(document)?.[1]?.replace('YOUR-HOST/v0.1.0', 'site.example/v1.2.3') ?? ''
  const { stdout } = await run('sed', ['-E', expression, 'deploy/alerts/prometheus-rule.yaml'], {
    cwd: project,
  })
  const urls = JSON.stringify(parse(stdout)).match(/(?<="runbook_url":")[^"]+/g) ?? []
  expect(urls.length).toBeGreaterThan(15)
  const dead = urls.filter(url => {
    const [address = '', anchor = ''] = url.split('#')
    const target = address.replace('https://site.example/v1.2.3/', '')
    return !pages().includes(target) || !linksIn(page(target)).anchors.has(anchor)
  })
  expect(dead).toEqual([])
})

test('D23.links: the text of a document stays as it is, also what looks like a template', async () => {
  const blocks = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, code = '']) => code)
  const changed: string[] = []
  let count = 0
  for (const source of markdownFiles().filter(each => each.startsWith('docs/') || each === 'README.md')) {
    const fences = blocks(await readFile(join(project, source), 'utf8'), /^```\w+\n(.*?)^```$/gms)
    const built = blocks(page(addressOf(source)), /<pre[^>]*><code class="[^"]*">(.*?)<\/code>/gs)
    const shown = new Set(built.map(code => code.replace(/&\w+;/g, unescaped)))
    count += fences.length
    changed.push(...fences.filter(code => !shown.has(code)).map(code => `${source}: ${code}`))
  }
  expect(changed).toEqual([])
  expect(count).toBeGreaterThan(50)
})

const unescaped = (entity: string) =>
  ({ '&lt;': '<', '&gt;': '>', '&quot;': '"', '&amp;': '&' })[entity] ?? entity

test('D23.offline: pages load files of the site only, and no inline script or style', () => {
  const loading = /<(?:script|link|img|iframe|source|video|object|embed)\b[^>]*>/g
  const foreign = pages().flatMap(address =>
    [...page(address).matchAll(loading)]
      .map(([tag]) => tag)
      .filter(tag => /(?:src|href)="(?:[a-z]+:|\/\/)/i.test(tag)),
  )
  expect(foreign).toEqual([])
  const inline = pages().filter(address =>
    /<style|<script(?![^>]* src=)|<[a-z][^>]* (?:style|on\w+)=/.test(page(address)),
  )
  expect(inline).toEqual([])
  expect(pages().filter(address => !page(address).includes("default-src 'none'"))).toEqual([])
  const assets = readdirSync(join(site, 'v1.2.3/site')).map(name => page(`site/${name}`))
  expect(
    assets.filter(text => /@import|url\(|https?:\/\/(?!www\.w3\.org\/)/.test(text.slice(0, 100_000))),
  ).toEqual([])
})

test('D23.command: options that do not exist are refused, and nothing is built', async () => {
  const into = join(site, 'other')
  for (const args of [
    ['--sevre'],
    ['docs'],
    ['--version', 'latest'],
    ['--port', '80'],
    ['--serve', '--port', 'x'],
  ])
    await expect(
      run('node', ['site/main.ts', '--into', into, ...args], { cwd: project }),
    ).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^site: .+/),
    })
  await expect(stat(into)).rejects.toThrow('ENOENT')
})
