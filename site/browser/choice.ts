/** The choice of colours, which the browser keeps for the site. */

export const colourChoices = ['auto', 'light', 'dark'] as const
export type Colours = (typeof colourChoices)[number]

const key = 'understudy-colours'

/** Returns the choice: `auto` follows the system. A browser may refuse storage. */
export function chosenColours(): Colours {
  try {
    const stored = localStorage.getItem(key)
    return colourChoices.find(choice => choice === stored) ?? 'auto'
  } catch {
    return 'auto'
  }
}

export function showColours(colours: Colours): void {
  document.documentElement.dataset['colours'] = colours
}

export function chooseColours(colours: Colours): void {
  showColours(colours)
  try {
    localStorage.setItem(key, colours)
  } catch {
    // The choice holds for this page.
  }
}
