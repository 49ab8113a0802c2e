/** The page in a browser. */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import type { RunningBrowser } from '../../support/browser.ts'
import { waitLimitMs } from '../../support/wait-limit.ts'

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

export interface Visit extends AsyncDisposable {
  readonly page: Page
  /** Everything that the browser complained of. */
  readonly complaints: readonly string[]
}

/** Opens an address that `dashboard` has printed, in a browser that has no cookies yet. */
export async function visit(
  { browser }: Pick<RunningBrowser, 'browser'>,
  address: string,
  options: { readonly dark?: boolean } = {},
): Promise<Visit> {
  const context = await browser.newContext({
    colorScheme: options.dark === true ? 'dark' : 'light',
    viewport: { width: 1100, height: 640 },
  })
  context.setDefaultTimeout(waitLimitMs)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
  })
  page.on('pageerror', error => complaints.push(error.message))
  await page.goto(address)
  await page.waitForURL(url => url.hash === '')
  return { page, complaints, [Symbol.asyncDispose]: () => context.close() }
}

/** Returns what axe finds, a line each. */
export async function violations(page: Page): Promise<readonly string[]> {
  await page.evaluate(await readFile(axe, 'utf8'))
  return page.evaluate<string[]>(
    'axe.run().then(({violations}) => violations.flatMap(({id, nodes}) => nodes.map(({html}) => id + ": " + html)))',
  )
}
