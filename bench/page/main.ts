/**
 * `node bench/page/main.ts`: how long the page of `kubectl understudy dashboard` takes with 1,000 slots until its first picture, and from a
 * failover until the page has it. A real API server, a real browser; the bench plays operator and agents. It needs no cluster.
 */
import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'
import { slotLimits } from '../../src/api/slot-status.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { namespaces } from '../../src/kube/resources.ts'
import { startPlane } from '../../test/apiserver/lib/start-plane.ts'
import { startDashboard } from '../../test/apiserver/page/dashboard.ts'
import {
  failoverOf,
  frozenFor,
  putPod,
  putReport,
  putSet,
  slotOn,
  tellReport,
  tellSet,
} from '../../test/apiserver/page/objects.ts'
import { startBrowser } from '../../test/support/browser.ts'
import { machineLine } from '../machine.ts'
import { createSamples, renderReport } from '../report.ts'

const namespace = 'bench-page'
const sets = Array.from({ length: 5 }, (_, index) => `set-${index}`)
const perSet = slotLimits.listed
const nodes = Array.from({ length: 10 }, (_, index) => `node-${index}`)
const total = sets.length * perSet
/** Agents report at least so often while they save, ms. */
const reportEveryMs = 1_000
const atOnce = 16

const nodeOf = (slot: number): string => nodes[slot % nodes.length] ?? ''

async function putWorld(api: Api): Promise<ReadonlyMap<string, string>> {
  await api.create(namespaces, { metadata: { name: namespace } })
  const uids = new Map<string, string>()
  const wanted = sets.flatMap(set => Array.from({ length: perSet }, (_, slot) => ({ set, slot })))
  for (let from = 0; from < wanted.length; from += atOnce)
    await Promise.all(
      wanted.slice(from, from + atOnce).map(async ({ set, slot }) => {
        await putPod(api, namespace, set, { name: `${set}-${slot}`, node: nodeOf(slot), slot })
        const heir = await putPod(api, namespace, set, { name: `${set}-hot-${slot}`, node: nodeOf(slot + 1) })
        uids.set(`${set} ${slot}`, heir.metadata.uid)
      }),
    )
  for (const node of nodes) await putReport(api, node, reportsOf(node, uids))
  for (const set of sets) await putSet(api, namespace, set, { slots: slotsOf(set), hotBackups: perSet })
  return uids
}

const reportsOf = (node: string, uids: ReadonlyMap<string, string>) =>
  sets.flatMap(set =>
    Array.from({ length: perSet }, (_, slot) => slot)
      .filter(slot => nodeOf(slot + 1) === node)
      .map(slot => frozenFor(namespace, set, slot, uids.get(`${set} ${slot}`) ?? '')),
  )

const slotsOf = (set: string) =>
  Array.from({ length: perSet }, (_, slot) =>
    slotOn(set, slot, nodeOf(slot), { usableOn: [nodeOf(slot + 1)] }),
  )

/** Resolves in the frame after the one in which the expression has become true, with the time of the clock, ms. */
const whenDrawn = (page: Page, expression: string): Promise<number> =>
  page.evaluate<number>(`new Promise(resolve => {
    const look = () => {
      if (${expression}) requestAnimationFrame(() => resolve(Date.now()))
      else requestAnimationFrame(look)
    }
    look()
  })`)

const rows = `document.querySelectorAll('tbody tr').length >= ${total}`

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { n: { type: 'string', default: '30' } } })
  const n = Number(values.n)
  const samples = createSamples()
  const plane = await startPlane()
  const api = createApi({ connection: await loadConnection({ kubeconfig: plane.kubeconfigPath }) })
  const stop = new AbortController()
  try {
    const uids = await putWorld(api)
    await using dashboard = await startDashboard(plane.kubeconfigPath, ['-n', namespace])
    await using chromium = await startBrowser()
    const open = async () => {
      const context = await chromium.browser.newContext({ viewport: { width: 1200, height: 900 } })
      return context.newPage()
    }
    const arrive = async (page: Page) => {
      await page.goto(dashboard.address, { waitUntil: 'commit' })
      await page.waitForURL(url => url.search === '', { waitUntil: 'commit' })
      return whenDrawn(page, rows)
    }
    // The first page waits until the program has read everything.
    const warm = await open()
    await arrive(warm)
    await warm.context().close()
    for (let trial = 0; trial < n; trial++) {
      const page = await open()
      const begun = Date.now()
      samples.add('address opened to picture of 1,000 slots', 's', ((await arrive(page)) - begun) / 1000)
      await page.context().close()
    }
    const reporting = keepReporting(api, uids, stop.signal)
    const page = await open()
    await arrive(page)
    for (let trial = 0; trial < n; trial++) {
      const successor = `successor-${trial}`
      const seen = whenDrawn(
        page,
        `document.querySelector('.happenings').textContent.includes('→ ${successor} ')`,
      )
      const set = sets[trial % sets.length] ?? ''
      const slots = slotsOf(set).map(slot =>
        slot.slot === trial ? { ...slot, pod: successor, epoch: 2 } : slot,
      )
      const begun = Date.now()
      const failovers = [failoverOf(trial, `${set}-${trial}`, successor, 0)]
      await tellSet(api, namespace, set, { slots, failovers, hotBackups: perSet })
      samples.add('failover written to failover on the page', 's', ((await seen) - begun) / 1000)
    }
    stop.abort()
    await reporting
  } finally {
    stop.abort()
    await api.close()
    await plane.stop()
  }
  console.log(`${machineLine()}\n\n${renderReport(samples.report('page'))}`)
}

/** The nodes report by turns, as they do while they save. */
async function keepReporting(
  api: Api,
  uids: ReadonlyMap<string, string>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted)
    for (const node of nodes) {
      if (signal.aborted) return
      await tellReport(api, node, reportsOf(node, uids))
      await new Promise(resolve => setTimeout(resolve, reportEveryMs / nodes.length))
    }
}

await main()
