/**
 * The rows of slots. lit has several nodes for each value, and compares all values of all rows at each drawing. With a thousand rows that is
 * most of the work of the page, so this file writes the texts that have changed, and nothing else.
 */
import { nothing } from 'lit-html'
import { Directive, directive, type ElementPart } from 'lit-html/directive.js'
import { age } from '../../output/quantities.ts'
import type { FollowerPicture, SetPicture, SlotPicture } from '../wire.ts'

export interface RowView {
  /** The moment for which ages are shown, ms. */
  readonly at: number
  readonly isPresent: boolean
  readonly askDrill: (set: SetPicture, slot: SlotPicture) => void
}

interface Cell {
  readonly text: string
  /** Class of the cell. */
  readonly look?: 'good' | 'bad'
}

/** Returns the cells of a row, without the button of drills. */
function cellsOf({ memory }: SetPicture, slot: SlotPicture, at: number): readonly Cell[] {
  const { pod, node = '-', ready, protection = 'None', savedAt, generation, followers } = slot
  const saved = savedAt === undefined ? '-' : `${age((at - savedAt) / 1000)} ago`
  const ofMemory: readonly Cell[] = [
    { text: generation === undefined ? saved : `${saved} #${generation}` },
    { text: protection, look: protection === 'None' ? 'bad' : 'good' },
  ]
  return [
    ...[{ text: String(slot.slot) }, { text: pod }, { text: node }],
    ready ? { text: 'Ready', look: 'good' } : { text: 'not Ready', look: 'bad' },
    ...(memory === undefined ? [] : ofMemory),
    { text: [...followers.map(followerText), ...others(slot)].join(', ') },
  ]
}

const followerText = ({ how, pod, node }: FollowerPicture): string =>
  pod === undefined ? 'a new pod' : `${pod}${node === undefined ? '' : ` on ${node}`} (${how})`

const others = ({ otherFollowers = 0 }: SlotPicture): readonly string[] =>
  otherFollowers === 0 ? [] : [`${otherFollowers} more`]

interface Row {
  readonly element: HTMLTableRowElement
  readonly cells: readonly { readonly element: HTMLElement; readonly text: Text; shown: Cell }[]
  readonly button: HTMLButtonElement | undefined
  set: SetPicture
  slot: SlotPicture
}

class SlotRows extends Directive {
  #rows = new Map<number, Row>()
  #view: RowView | undefined
  /** Columns of the rows: others need other rows. */
  #columns = ''

  render(_set: SetPicture, _view: RowView): typeof nothing {
    return nothing
  }

  override update({ element }: ElementPart, [set, view]: [SetPicture, RowView]): typeof nothing {
    const columns = `${set.memory === undefined} ${set.drill}`
    if (columns !== this.#columns) {
      element.replaceChildren()
      this.#rows.clear()
    }
    this.#columns = columns
    this.#view = view
    const numbers = new Set(set.slots.map(({ slot }) => slot))
    for (const [number, row] of this.#rows)
      if (!numbers.has(number)) {
        row.element.remove()
        this.#rows.delete(number)
      }
    let next = element.firstElementChild
    for (const slot of set.slots) {
      const row = this.#rows.get(slot.slot) ?? this.#made(set, slot)
      this.#rows.set(slot.slot, row)
      write(row, set, slot, view)
      if (row.element === next) next = next.nextElementSibling
      else element.insertBefore(row.element, next)
    }
    return nothing
  }

  #made(set: SetPicture, slot: SlotPicture): Row {
    const element = document.createElement('tr')
    const cells = cellsOf(set, slot, 0).map((_, index) => {
      const cell = document.createElement(index === 0 ? 'th' : 'td')
      if (index === 0) cell.setAttribute('scope', 'row')
      const text = document.createTextNode('')
      cell.append(text)
      element.append(cell)
      return { element: cell, text, shown: { text: '' } }
    })
    const button = set.drill ? buttonIn(element) : undefined
    const row: Row = { element, cells, button, set, slot }
    button?.addEventListener('click', () => this.#view?.askDrill(row.set, row.slot))
    return row
  }
}

function buttonIn(row: HTMLTableRowElement): HTMLButtonElement {
  const button = document.createElement('button')
  button.type = 'button'
  button.textContent = 'Drill'
  const cell = document.createElement('td')
  cell.append(button)
  row.append(cell)
  return button
}

function write(row: Row, set: SetPicture, slot: SlotPicture, { at, isPresent }: RowView): void {
  for (const [index, next] of cellsOf(set, slot, at).entries()) {
    const cell = row.cells[index]
    if (cell === undefined) continue
    if (cell.shown.text !== next.text) cell.text.data = next.text
    if (cell.shown.look !== next.look) cell.element.className = next.look ?? ''
    cell.shown = next
  }
  row.set = set
  row.slot = slot
  if (row.button === undefined) return
  const isDisabled = !isPresent || !slot.ready
  if (row.button.disabled !== isDisabled) row.button.disabled = isDisabled
  if (!row.button.hasAttribute('aria-label'))
    row.button.setAttribute('aria-label', `Drill slot ${slot.slot} of ${set.key}`)
}

/** Fills a `<tbody>` with the slots of a set. */
export const slotRows = directive(SlotRows)
