/** The page in a browser that also visits others, and that has many tabs. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type RunningBrowser, startBrowser } from '../../support/browser.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { startDashboard } from './dashboard.ts'
import { visit } from './visit.ts'

let chromium: RunningBrowser
beforeAll(async () => {
  chromium = await startBrowser()
})
afterAll(() => chromium?.[Symbol.asyncDispose]())

const start = () => startDashboard(adminKubeconfig(), ['-n', 'understudy-no-sets'])
const filled = 'There are no sets.'

it('D20.guard programs on other ports of this machine get nothing from a browser that has the page open', async () => {
  const heard: IncomingHttpHeaders[] = []
  const other = createServer((request, response) => {
    heard.push(request.headers)
    response.setHeader('content-type', 'text/html').end('<title>other</title>')
  })
  await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
  try {
    await using dashboard = await start()
    await using visited = await visit(chromium, dashboard.address)
    await visited.page.getByText(filled).waitFor()
    const address = other.address()
    if (address === null || typeof address === 'string') throw new TypeError('no port')
    const elsewhere = await visited.page.context().newPage()
    await elsewhere.goto(`http://127.0.0.1:${address.port}/`)
    expect(heard.length).toBeGreaterThan(0)
    const key = new URL(dashboard.address).hash.slice('#key='.length)
    expect(heard.filter(({ cookie }) => cookie !== undefined)).toEqual([])
    expect(JSON.stringify(heard)).not.toContain(key)
    expect(await elsewhere.evaluate('sessionStorage.length')).toBe(0)
  } finally {
    other.closeAllConnections()
    await new Promise(resolve => other.close(resolve))
  }
})

it('D20.guard a page without the key says what to open, and takes the key that is put into its address', async () => {
  await using dashboard = await start()
  await using visited = await visit(chromium, `${new URL(dashboard.address).origin}/`)
  const { page } = visited
  await page
    .getByText(/The program refuses this page: open the address that the program has printed/)
    .waitFor()
  expect(await page.getByText(filled).count()).toBe(0)
  await page.goto(dashboard.address)
  await page.getByText(filled).waitFor()
  await page.reload()
  await page.getByText(filled).waitFor()
  expect(page.url()).not.toContain('key')
})

it('D20.many tabs in the background leave the connections of the browser to the tab that is looked at', async () => {
  await using dashboard = await start()
  await using visited = await visit(chromium, dashboard.address)
  await visited.page.getByText(filled).waitFor()
  const hide = `
    Object.defineProperty(document, 'hidden', { value: true })
    document.dispatchEvent(new Event('visibilitychange'))`
  // Browsers have six connections to one program.
  for (let tab = 0; tab < 7; tab++) {
    const page = await visited.page.context().newPage()
    await page.goto(dashboard.address)
    await page.getByText(filled).waitFor()
    await page.evaluate(hide)
  }
})
