/** The search, in an index that the browser loads at its first use. */
import MiniSearch, { type SearchResult } from 'minisearch'
import { searchOptions } from './search-options.ts'

const shown = 20

export function startSearch(root: string): void {
  const search = document.querySelector<HTMLElement>('search')
  const input = search?.querySelector('input')
  const results = search?.querySelector<HTMLElement>('#results')
  const status = search?.querySelector<HTMLElement>('[role=status]')
  const list = search?.querySelector('ol')
  if (!search || !input || !results || !status || !list) return
  let loading: Promise<MiniSearch> | undefined
  const find = async () => {
    const words = input.value.trim()
    results.hidden = words === ''
    if (words === '') return
    loading ??= load(root)
    try {
      const found = (await loading).search(words)
      // A slow answer must not replace that of a later word.
      if (words !== input.value.trim()) return
      list.replaceChildren(...found.slice(0, shown).map(result => itemOf(root, result)))
      status.textContent = sentence(found.length)
    } catch {
      loading = undefined
      status.textContent = 'The index of the search cannot be loaded: serve the site over HTTP.'
    }
  }
  input.addEventListener('input', find)
  input.addEventListener('focus', find)
  listenToKeys(search, input, results)
  search.hidden = false
}

const sentence = (count: number): string =>
  count === 0
    ? 'Nothing found.'
    : count > shown
      ? `The best ${shown} of ${count} results.`
      : `${count} ${count === 1 ? 'result' : 'results'}.`

async function load(root: string): Promise<MiniSearch> {
  const response = await fetch(`${root}site/search.json`)
  if (!response.ok) throw new Error(`the server answers ${response.status}`)
  return MiniSearch.loadJSON(await response.text(), searchOptions)
}

function itemOf(root: string, { id, title, page }: SearchResult): HTMLElement {
  const link = document.createElement('a')
  link.href = `${root}${String(id)}`
  link.textContent = String(title)
  const where = document.createElement('span')
  where.textContent = title === page ? '' : String(page)
  link.append(' ', where)
  const item = document.createElement('li')
  item.append(link)
  return item
}

/** `/` begins a search, the arrows go through its results, Escape ends it. */
function listenToKeys(search: HTMLElement, input: HTMLInputElement, results: HTMLElement): void {
  document.addEventListener('keydown', event => {
    const isTyping = event.target instanceof HTMLElement && event.target.matches('input, select, textarea')
    if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    input.focus()
  })
  search.addEventListener('keydown', event => {
    if (event.key === 'Escape') {
      results.hidden = true
      input.focus()
      return
    }
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step === 0 || results.hidden) return
    event.preventDefault()
    const stops: (Element & HTMLOrSVGElement)[] = [input, ...results.querySelectorAll('a')]
    const at = stops.findIndex(stop => stop.matches(':focus'))
    stops[Math.max(0, Math.min(stops.length - 1, at + step))]?.focus()
  })
  document.addEventListener('click', event => {
    if (event.target instanceof Node && !search.contains(event.target)) results.hidden = true
  })
  results.addEventListener('click', event => {
    if (event.target instanceof HTMLAnchorElement) results.hidden = true
  })
}
