/** The page in the browser: hears what the program sends, and draws it. */
import { render } from 'lit-html'
import type { DrillAnswer, DrillRequest, SetPicture, SlotPicture } from '../wire.ts'
import { createDrillDialog } from './drill-dialog.ts'
import { takeKey } from './key.ts'
import {
  type Connection,
  type Filter,
  nothingShown,
  type Presence,
  presenceOf,
  received,
  silentMs,
} from './shown.ts'
import { hear } from './stream.ts'
import { page } from './view.ts'

/** Ages grow while nothing comes. */
const redrawEveryMs = 1_000

function start(root: HTMLElement): void {
  const key = takeKey()
  const announcer = announcerIn(document.body)
  let shown = { ...nothingShown, heardAt: Date.now() }
  let filter: Filter = { words: '', onlyTroubled: false }
  let connection: Connection = { type: 'open' }
  let isAsked = false
  let announced: Presence['type'] = 'waiting'
  const dialog = createDrillDialog(document.body, request => drill(key, request))

  const draw = () => {
    isAsked = false
    const presence = presenceOf(shown, connection, Date.now())
    const now = Date.now() + shown.ahead
    const at = 'since' in presence ? presence.since : now
    if (presence.type !== announced) announcer(presenceNews[presence.type])
    announced = presence.type
    const askDrill = (set: SetPicture, { slot, pod }: SlotPicture) =>
      dialog({ namespace: set.namespace, set: set.name, slot }, pod)
    render(page({ shown, presence, at, now, filter, choose, askDrill }), root)
  }
  const redraw = () => {
    if (isAsked) return
    isAsked = true
    requestAnimationFrame(draw)
  }
  const choose = (next: Filter) => {
    filter = next
    redraw()
  }
  const become = (next: Connection) => {
    connection = next
    redraw()
  }
  void hear(key, silentMs, {
    message(message) {
      shown = received(shown, message, Date.now())
      for (const words of shown.news) announcer(words)
      become({ type: 'open' })
    },
    lost: () => become({ type: 'lost' }),
    refused: why => become({ type: 'refused', why }),
  })
  setInterval(redraw, redrawEveryMs)
  // The address of another run differs only in its key, for which browsers load nothing.
  addEventListener('hashchange', () => {
    takeKey()
    location.reload()
  })
  document.addEventListener('keydown', event => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.target instanceof HTMLInputElement)
      return
    event.preventDefault()
    document.getElementById('filter')?.focus()
  })
  root.replaceChildren()
  draw()
}

const presenceNews: Readonly<Record<Presence['type'], string>> = {
  waiting: 'The program reads the objects of the cluster.',
  present: 'The page shows the present.',
  lost: 'The API server does not answer. The page shows the past.',
  ended: 'The program that serves this page does not answer. The page shows the past.',
  refused: 'The program refuses this page.',
}

/** Returns a function that tells news to screen readers. */
function announcerIn(parent: HTMLElement): (words: string) => void {
  const region = document.createElement('div')
  region.className = 'unseen'
  region.setAttribute('role', 'status')
  parent.append(region)
  return words => {
    const line = document.createElement('p')
    line.textContent = words
    region.append(line)
    while (region.childElementCount > 5) region.firstElementChild?.remove()
  }
}

async function drill(key: string, request: DrillRequest): Promise<DrillAnswer> {
  try {
    const response = await fetch('/drill', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify(request),
    })
    if (!response.ok) return { ok: false, text: await response.text() }
    return (await response.json()) as DrillAnswer
  } catch {
    return { ok: false, text: 'the program that serves this page does not answer' }
  }
}

const root = document.getElementById('page')
if (root !== null) start(root)
