/** The documentation site in a real browser. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { publish } from '../../../site/publish.ts'
import { type SiteServer, serve } from '../../../site/serve.ts'
import { type RunningBrowser, startBrowser } from '../../support/browser.ts'
import { violations, visit } from './visit.ts'

let chromium: RunningBrowser
let directory: string
let server: SiteServer

beforeAll(async () => {
  chromium = await startBrowser()
  directory = await mkdtemp(join(tmpdir(), 'understudy-site-page-'))
  await publish(directory, { version: 'v1.0.0' })
  await publish(directory, { version: 'v1.1.0' })
  // The older release does not have this page yet.
  await rm(join(directory, 'v1.0.0/docs/clone.html'))
  server = await serve(directory, 0)
})
afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  await chromium?.[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

const at = (path: string) => `${server.address}${path}`
const search = (page: Page) => page.getByRole('searchbox', { name: 'Search' })
const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name })

describe('D23.browser: the site', () => {
  it('finds a word without another server, and leads to its page', async () => {
    await using visited = await visit(chromium, at('v1.1.0/index.html'))
    const { page, complaints } = visited
    const hosts = new Set<string>()
    page.on('request', request => hosts.add(new URL(request.url()).origin))
    await page.keyboard.press('/')
    await page.keyboard.type('UnderstudyMemoryLost')
    const first = page.getByRole('search').getByRole('link').first()
    await expect.poll(() => first.textContent()).toContain('UnderstudyMemoryLost')
    await page
      .getByRole('status')
      .getByText(/results?\.$/)
      .waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await heading(page, 'Runbooks').waitFor()
    expect(page.url()).toBe(at('v1.1.0/docs/runbooks.html#understudymemorylost'))
    expect([...hosts]).toEqual([new URL(server.address).origin])
    expect(complaints).toEqual([])
  })

  it('finds a field of the API, and says so if there is nothing', async () => {
    await using visited = await visit(chromium, at('v1.1.0/docs/object.html'))
    const { page } = visited
    await search(page).fill('spec.hotBackup.mode')
    await page
      .getByRole('link', { name: /^spec\.hotBackup\.mode/ })
      .first()
      .click()
    await heading(page, 'BackupPodSet').waitFor()
    await page.locator('tr:target').getByText('Staged').first().waitFor()
    await search(page).fill('xylophone')
    await page.getByRole('status').getByText('Nothing found.').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('status').waitFor({ state: 'hidden' })
  })

  it('switches between versions on the same page, and names the newest', async () => {
    await using visited = await visit(chromium, at('v1.0.0/docs/runbooks.html'))
    const { page } = visited
    await page.getByText('This page is about v1.0.0. The newest release is').waitFor()
    await page.getByRole('combobox', { name: 'Version' }).selectOption('v1.1.0')
    await page.waitForURL(at('v1.1.0/docs/runbooks.html'))
    await page.getByRole('combobox', { name: 'Version' }).isEnabled()
    expect(await page.getByText('The newest release is').isVisible()).toBe(false)
    await page.goto(at('v1.1.0/docs/clone.html'))
    await page.getByRole('combobox', { name: 'Version' }).selectOption('v1.0.0')
    await page.waitForURL(at('v1.0.0/index.html'))
  })

  it('leads from its root to the newest release, and keeps the colours that were chosen', async () => {
    await using visited = await visit(chromium, at(''))
    const { page } = visited
    await page.waitForURL(at('v1.1.0/index.html'))
    const ground = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
    expect(await ground()).toBe('rgb(255, 255, 255)')
    await page.getByRole('button', { name: 'Colours: auto' }).click()
    await page.getByRole('button', { name: 'Colours: light' }).click()
    await page.getByRole('button', { name: 'Colours: dark' }).waitFor()
    const dark = await ground()
    expect(dark).not.toBe('rgb(255, 255, 255)')
    await page.goto(at('v1.1.0/docs/try.html'))
    expect(await ground()).toBe(dark)
  })

  const examined = [
    'index.html',
    'docs/install.html',
    'docs/runbooks.html',
    'reference/backup.example.com/Migration-v1alpha1.html',
  ]
  it.each(examined)('%s: axe finds nothing, in light and dark', async address => {
    for (const dark of [false, true]) {
      await using visited = await visit(chromium, at(`v1.1.0/${address}`), { dark })
      await search(visited.page).waitFor()
      expect(await violations(visited.page)).toEqual([])
      expect(visited.complaints).toEqual([])
    }
  })

  it('is usable with the keyboard, also while results are shown', async () => {
    await using visited = await visit(chromium, at('v1.1.0/docs/clone.html'))
    const { page } = visited
    await search(page).waitFor()
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content')
    await page.keyboard.press('Enter')
    expect(await page.evaluate('document.activeElement.id')).toBe('content')
    await page.keyboard.press('/')
    await page.keyboard.type('memory')
    await page.getByRole('status').getByText('results').waitFor()
    expect(await violations(page)).toEqual([])
    await page.keyboard.press('ArrowDown')
    expect(await page.evaluate('document.activeElement.closest("#results") !== null')).toBe(true)
    await page.keyboard.press('Escape')
    expect(await page.evaluate('document.activeElement.type')).toBe('search')
  })
})
