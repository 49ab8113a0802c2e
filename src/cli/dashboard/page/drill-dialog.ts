import { html, nothing, render } from 'lit-html'
import type { DrillAnswer, DrillRequest } from '../wire.ts'

type State =
  | { readonly type: 'asks' }
  | { readonly type: 'runs' }
  | { readonly type: 'over'; readonly answer: DrillAnswer }

/**
 * Adds a dialog to the page that asks before a drill, and then tells how it went.
 *
 * @returns a function that opens it
 */
export function createDrillDialog(
  parent: HTMLElement,
  perform: (request: DrillRequest) => Promise<DrillAnswer>,
): (request: DrillRequest, pod: string) => void {
  const dialog = document.createElement('dialog')
  dialog.setAttribute('aria-labelledby', 'drill-title')
  parent.append(dialog)
  const draw = (request: DrillRequest, pod: string, state: State) => {
    const go = async () => {
      draw(request, pod, { type: 'runs' })
      draw(request, pod, { type: 'over', answer: await perform(request) })
    }
    render(content(request, pod, state, { go, close: () => dialog.close() }), dialog)
  }
  return (request, pod) => {
    draw(request, pod, { type: 'asks' })
    if (!dialog.open) dialog.showModal()
  }
}

interface Buttons {
  readonly go: () => void
  readonly close: () => void
}

function content({ namespace, set, slot }: DrillRequest, pod: string, state: State, { go, close }: Buttons) {
  return html`<h2 id="drill-title">Drill slot ${slot} of ${namespace}/${set}</h2>
    <div role="status">
      ${
        state.type === 'asks'
          ? html`<p>This deletes the primary <code>${pod}</code>, as a failure would end it. Changes since its last save are lost.</p>`
          : state.type === 'runs'
            ? html`<p>The drill waits until a successor serves ...</p>`
            : answerPart(state.answer)
      }
    </div>
    <p class="buttons">
      ${state.type === 'asks' ? html`<button type="button" class="danger" @click=${go}>Delete the primary</button>` : nothing}
      <button type="button" autofocus @click=${close}>${state.type === 'asks' ? 'Cancel' : 'Close'}</button>
    </p>`
}

const answerPart = (answer: DrillAnswer) =>
  answer.ok
    ? html`<pre>${answer.text}</pre>`
    : html`<p class="bad">${answer.text}</p>${answer.advice === undefined ? nothing : html`<p>→ ${answer.advice}</p>`}`
