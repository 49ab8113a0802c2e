/** The script of every page: search, versions, colours. Without it, all pages can be read and browsed. */
import { chooseColours, chosenColours, colourChoices } from './choice.ts'
import { startSearch } from './search.ts'
import { startVersions } from './versions.ts'

const { root = './', page = 'index.html', version = '' } = document.body.dataset

function startColours(): void {
  const button = document.querySelector<HTMLButtonElement>('button.colours')
  if (button === null) return
  const show = () => {
    button.textContent = `Colours: ${chosenColours()}`
  }
  button.addEventListener('click', () => {
    const next = (colourChoices.indexOf(chosenColours()) + 1) % colourChoices.length
    chooseColours(colourChoices[next] ?? 'auto')
    show()
  })
  show()
  button.hidden = false
}

startColours()
startSearch(root)
await startVersions(root, page, version)
