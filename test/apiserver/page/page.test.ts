/** The page of `dashboard` in a real browser, with a real API server behind it. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { migrations } from '../../../src/api/migration.ts'
import { nodeReports } from '../../../src/api/node-report.ts'
import { slotLimits } from '../../../src/api/slot-status.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { namespaces, pods } from '../../../src/kube/resources.ts'
import { type RunningBrowser, startBrowser } from '../../support/browser.ts'
import { startFaultProxy } from '../fault-proxy.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { startDashboard } from './dashboard.ts'
import {
  ago,
  failoverOf,
  frozenFor,
  putMigration,
  putPod,
  putReport,
  putSet,
  slotOn,
  tellSet,
} from './objects.ts'
import { violations, visit } from './visit.ts'

let api: Api
let chromium: RunningBrowser
let directory: string
const namespace = `arena-${randomBytes(2).toString('hex')}`
const node = (name: string) => `${name}-node`

beforeAll(async () => {
  chromium = await startBrowser()
  directory = await mkdtemp(join(tmpdir(), 'understudy-page-'))
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  await api.create(namespaces, { metadata: { name: namespace } })
  for (const set of ['shop', 'game']) {
    await putPod(api, namespace, set, { name: `${set}-0`, node: node('n1'), slot: 0 })
    await putPod(api, namespace, set, { name: `${set}-1`, node: node('n1'), slot: 1 })
    const heir = await putPod(api, namespace, set, { name: `${set}-hot`, node: node(`${set}2`) })
    await putReport(api, node(`${set}2`), [frozenFor(namespace, set, 0, heir.metadata.uid)])
  }
  await putSet(api, namespace, 'shop', {
    slots: slotsOf('shop'),
    failovers: [failoverOf(1, 'shop-old', 'shop-1', 90)],
  })
  await putSet(api, namespace, 'game', { slots: slotsOf('game'), drills: true })
  await putMigration(api, namespace, 'to-n3', 'game-1', {
    phase: 'Preparing',
    phaseTimes: [
      { phase: 'Pending', at: ago(4) },
      { phase: 'Preparing', at: ago(3) },
    ],
    source: { uid: 'u', node: node('n1'), set: 'game', slot: 1 },
    target: { name: 'game-new', uid: 'v', node: node('n3') },
    conditions: [
      {
        ...{ type: 'Succeeded', status: 'Unknown', reason: 'MemoryComing', observedGeneration: 1 },
        ...{ message: 'its memory is on the way', lastTransitionTime: ago(3) },
      },
    ],
  })
})
afterAll(async () => {
  await chromium?.[Symbol.asyncDispose]()
  for (const set of ['shop', 'game']) {
    await api.delete(backupPodSets, { namespace, name: set })
    await api.delete(nodeReports, { name: node(`${set}2`) })
  }
  await api.delete(migrations, { namespace, name: 'to-n3' })
  await api.close()
  await rm(directory, { recursive: true, force: true })
})

/** Writes a kubeconfig, and returns its path. */
async function written(name: string, text: string): Promise<string> {
  const path = join(directory, name)
  await writeFile(path, text)
  return path
}

/** Returns the path of a kubeconfig of a user who may list and watch these resources of the namespace. */
async function limitedTo(user: string, rules: readonly object[]): Promise<string> {
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`
  const metadata = { name: user }
  await api.request('POST', `${rbac}/roles`, { body: { metadata, rules } })
  await api.request('POST', `${rbac}/rolebindings`, {
    body: {
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: user },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
    },
  })
  const admin: { readonly users: readonly { readonly user: object }[] } = parse(
    await readFile(adminKubeconfig(), 'utf8'),
  )
  const users = admin.users.map(each => ({ ...each, user: { ...each.user, as: user } }))
  return written(user, stringify({ ...admin, users }))
}

const slotsOf = (set: string) => [slotOn(set, 0, node('n1')), slotOn(set, 1, node('n1'))]
const inNamespace = ['-n', namespace]

const setOf = (page: Page, name: string) => page.getByRole('article', { name: `${namespace}/${name}` })
const rowOf = (page: Page, set: string, slot: number) =>
  setOf(page, set)
    .getByRole('row')
    .filter({ has: page.getByRole('rowheader', { name: String(slot), exact: true }) })
const shows = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor()

describe('the page', () => {
  it('D20.page shows sets, slots, the age of their states, and who would follow whom', async () => {
    await using dashboard = await startDashboard(adminKubeconfig(), inNamespace)
    await using visited = await visit(chromium, dashboard.address)
    const { page, complaints } = visited
    const row = rowOf(page, 'shop', 0)
    await row.waitFor()
    await expect
      .poll(async () => (await row.locator('th, td').allTextContents()).join(' '))
      .toMatch(/shop-0\s+n1-node\s+Ready\s+\S+ ago #8\s+Frozen\s+shop-hot on shop2-node \(Frozen\)/)
    expect(await rowOf(page, 'shop', 1).textContent()).toContain('a new pod')
    await shows(page, /failover, slot 1, shop-old → shop-1/)
    await shows(page, /serving 0.27 s/)
    await shows(page, /move under way, slot 1, game-1 on n1-node → game-new on n3-/)
    await shows(page, /Preparing .* so far/)
    expect(complaints).toEqual([])
    // For docs/dashboard.md: UNDERSTUDY_SCREENSHOT=docs/dashboard.png
    const path = process.env['UNDERSTUDY_SCREENSHOT']
    if (path !== undefined) await page.screenshot({ path })
  })

  it('D20.many has a row for each of a thousand slots, and finds one of them', async () => {
    const names = Array.from({ length: 5 }, (_, index) => `many-${index}`)
    for (const name of names)
      await putSet(api, namespace, name, {
        slots: Array.from({ length: slotLimits.listed }, (_, slot) => slotOn(name, slot, node('n1'))),
      })
    try {
      await using dashboard = await startDashboard(adminKubeconfig(), inNamespace)
      await using visited = await visit(chromium, dashboard.address)
      const { page } = visited
      await rowOf(page, 'many-4', slotLimits.listed - 1).waitFor({ state: 'attached' })
      for (const name of names)
        expect(await setOf(page, name).getByRole('rowheader').count()).toBe(slotLimits.listed)
      await page.keyboard.press('/')
      await page.keyboard.type('many-3-123')
      await page.getByText(/^1 of \d+ sets$/).waitFor()
      await rowOf(page, 'many-3', 123).scrollIntoViewIfNeeded()
    } finally {
      for (const name of names) await api.delete(backupPodSets, { namespace, name })
    }
  })

  it('D20.happens shows a failover as it happens, and tells screen readers', async () => {
    await using dashboard = await startDashboard(adminKubeconfig(), inNamespace)
    await using visited = await visit(chromium, dashboard.address)
    const { page } = visited
    await rowOf(page, 'shop', 0).waitFor()
    const heir = slotOn('shop', 0, node('shop2'), { pod: 'shop-hot', epoch: 2 })
    await tellSet(api, namespace, 'shop', {
      slots: [heir, slotOn('shop', 1, node('n1'))],
      failovers: [failoverOf(0, 'shop-0', 'shop-hot', 0)],
    })
    try {
      const words = 'failover, slot 0, shop-0 → shop-hot'
      await page.getByRole('listitem').filter({ hasText: words }).waitFor()
      await page.getByRole('status').getByText(`${namespace}/shop: ${words}`).waitFor({ state: 'attached' })
      expect(await rowOf(page, 'shop', 0).textContent()).toContain('shop-hot')
    } finally {
      await tellSet(api, namespace, 'shop', {
        slots: slotsOf('shop'),
        failovers: [failoverOf(1, 'shop-old', 'shop-1', 90)],
      })
    }
  })

  it('D20.past says so when the API server is lost, shows nothing old as the present, and recovers', async () => {
    const proxy = await startFaultProxy(await loadConnection({ kubeconfig: adminKubeconfig() }))
    try {
      await using dashboard = await startDashboard(await written('proxy', proxy.kubeconfig), inNamespace)
      await using visited = await visit(chromium, dashboard.address)
      const { page } = visited
      await rowOf(page, 'game', 0).waitFor()
      const away = proxy.loseRequest(Number.POSITIVE_INFINITY)
      proxy.dropWatch()
      await shows(page, /The API server does not answer since \d\d:\d\d:\d\d/)
      await shows(page, 'Not the present:')
      expect(await page.getByRole('button', { name: /^Drill slot 0/ }).isDisabled()).toBe(true)
      await api.patch(
        pods,
        { namespace, name: 'game-hot' },
        { type: 'merge', body: { metadata: { labels: { type: 'retired' } } } },
      )
      away.end()
      await page.getByText('Not the present:').waitFor({ state: 'detached' })
      await expect.poll(() => rowOf(page, 'game', 0).textContent()).toContain('a new pod')
    } finally {
      await api.patch(
        pods,
        { namespace, name: 'game-hot' },
        { type: 'merge', body: { metadata: { labels: { type: 'hotbackup' } } } },
      )
      await proxy.close()
    }
  })

  it('D20.rights names the rights that a user lacks, and shows the rest', async () => {
    const read = ['list', 'watch']
    const kubeconfig = await limitedTo('reader', [
      { apiGroups: ['backup.example.com'], resources: ['backuppodsets', 'migrations'], verbs: read },
    ])
    await using dashboard = await startDashboard(kubeconfig, inNamespace)
    await using visited = await visit(chromium, dashboard.address)
    const { page } = visited
    await rowOf(page, 'shop', 0).waitFor()
    await shows(page, `list pods in ${namespace}`)
    await shows(page, 'watch nodereports.backup.example.com in the whole cluster')
    expect(await page.getByText('migrations.backup.example.com').count()).toBe(0)
    expect(await page.getByText('Not the present:').count()).toBe(0)
  })

  it('D20.drill offers drills only for sets that allow them, and performs one', async () => {
    await using dashboard = await startDashboard(adminKubeconfig(), inNamespace)
    await using visited = await visit(chromium, dashboard.address)
    const { page } = visited
    await rowOf(page, 'game', 0).waitFor()
    expect(await setOf(page, 'shop').getByRole('button').count()).toBe(0)
    await page.getByRole('button', { name: `Drill slot 0 of ${namespace}/game` }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('This deletes the primary game-0').waitFor()
    await dialog.getByRole('button', { name: 'Delete the primary' }).click()
    // This test is the operator: it sees the deletion, and gives the slot to the hot backup.
    await expect
      .poll(() => api.get(pods, { namespace, name: 'game-0' }).catch(() => undefined))
      .toBeUndefined()
    const heir = slotOn('game', 0, node('game2'), { pod: 'game-hot', epoch: 2 })
    await tellSet(api, namespace, 'game', {
      slots: [heir, slotOn('game', 1, node('n1'))],
      failovers: [failoverOf(0, 'game-0', 'game-hot', 0)],
    })
    await dialog.getByText(/slot 0: game-0 was deleted → game-hot/).waitFor()
  })

  it('D20.access is usable with the keyboard, and axe finds nothing, in light and dark', async () => {
    await using dashboard = await startDashboard(adminKubeconfig(), inNamespace)
    for (const dark of [false, true]) {
      await using visited = await visit(chromium, dashboard.address, { dark })
      const { page } = visited
      await rowOf(page, 'game', 1).waitFor()
      await page.keyboard.press('Tab')
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the sets')
      await page.keyboard.press('/')
      await page.keyboard.type('shop-1')
      await setOf(page, 'game').waitFor({ state: 'detached' })
      await page.keyboard.press('Control+A')
      await page.keyboard.press('Delete')
      const drill = page.getByRole('button', { name: `Drill slot 0 of ${namespace}/game` })
      await drill.waitFor()
      expect(await violations(page)).toEqual([])
      await drill.focus()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog', { name: /^Drill slot 0/ }).waitFor()
      expect(await violations(page)).toEqual([])
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'hidden' })
      expect(await page.evaluate('document.activeElement.textContent.trim()')).toBe('Drill')
    }
  })
})
