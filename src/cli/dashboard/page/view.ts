/** The templates of the page. lit writes every value as text: none can become markup. */
import { html, nothing, svg, type TemplateResult } from 'lit-html'
import { repeat } from 'lit-html/directives/repeat.js'
import { age, duration } from '../../output/quantities.ts'
import type { Happening, Head, SetPicture, SlotPicture } from '../wire.ts'
import { slotRows } from './rows.ts'
import { chosen, type Filter, happeningText, newest, type Presence, type Shown } from './shown.ts'

export interface View {
  readonly shown: Shown
  readonly presence: Presence
  /** The program's clock; where the page does not show the present, that of the last good moment. ms. */
  readonly at: number
  /** The program's clock, ms. */
  readonly now: number
  readonly filter: Filter
  readonly choose: (filter: Filter) => void
  readonly askDrill: (set: SetPicture, slot: SlotPicture) => void
}

const mostHappenings = 50

export function page(view: View): TemplateResult {
  const { shown, presence, filter } = view
  const sets = chosen(shown.sets, filter)
  return html`
    <a class="skip" href="#sets">Skip to the sets</a>
    ${banner(view)}
    <header>
      <h1>Understudy</h1>
      <p>${shown.head === undefined ? nothing : scope(shown.head)}</p>
      ${filters(view, sets.length)}
    </header>
    <main class=${presence.type === 'present' ? '' : 'old'}>
      ${missing(shown.head)}
      ${oldHeading(view)}
      <section aria-labelledby="happenings-title" class="happenings">
        <h2 id="happenings-title">Failovers and moves</h2>
        ${happenings(newest(sets, mostHappenings), view)}
      </section>
      <section id="sets" aria-label="Sets" tabindex="-1">
        ${sets.length === 0 && presence.type === 'present' ? html`<p>${noSets(shown)}</p>` : nothing}
        ${repeat(
          sets,
          ({ key }) => key,
          set => setPart(set, view),
        )}
      </section>
    </main>`
}

const scope = ({ server, namespace, version }: Head): string =>
  `${namespace === undefined ? 'all namespaces' : `namespace ${namespace}`} of ${server}, version ${version}`

const noSets = ({ sets }: Shown): string =>
  sets.size === 0 ? 'There are no sets.' : 'No set matches the filter.'

/** `12:03:04`, in the time zone of the user. */
const clockText = (ms: number): string => new Date(ms).toLocaleTimeString([], { hour12: false })

function banner({ presence, now }: View): TemplateResult {
  const since = (ms: number) => `${clockText(ms)}, ${age((now - ms) / 1000)} ago`
  const text = (): string => {
    switch (presence.type) {
      case 'present':
        return ''
      case 'waiting':
        return 'The program reads the objects of the cluster.'
      case 'lost':
        return `The API server does not answer since ${since(presence.since)}: ${presence.why}`
      case 'ended':
        return `The program that serves this page does not answer since ${since(presence.since)}. Start it again, and open the address that it prints.`
      case 'refused':
        return `The program refuses this page: ${presence.why}`
    }
  }
  const isBad = presence.type !== 'present' && presence.type !== 'waiting'
  // The words change each second, but only the first ones are announced: see `main.ts`.
  return html`<div class=${isBad ? 'banner bad' : 'banner'} ?hidden=${presence.type === 'present'}>${text()}</div>`
}

const oldHeading = ({ presence, at }: View) =>
  presence.type === 'lost' || presence.type === 'ended'
    ? html`<p class="past"><strong>Not the present:</strong> everything below is as it was at ${clockText(at)}.</p>`
    : nothing

const missing = (head: Head | undefined) =>
  head === undefined || head.missing.length === 0
    ? nothing
    : html`<section aria-labelledby="missing-title" class="missing">
        <h2 id="missing-title">You may not read everything</h2>
        <ul>
          ${head.missing.map(({ right, shows }) => html`<li>The page does not show ${shows}: you lack the right to <code>${right}</code>.</li>`)}
        </ul>
      </section>`

function filters({ filter, choose, shown }: View, count: number): TemplateResult {
  return html`<form class="filters" role="search" @submit=${(event: Event) => event.preventDefault()}>
    <label>
      Filter
      <input
        type="search"
        id="filter"
        autocomplete="off"
        placeholder="set, pod or node ( / )"
        .value=${filter.words}
        @input=${(event: Event) => {
          if (event.target instanceof HTMLInputElement) choose({ ...filter, words: event.target.value })
        }}
      />
    </label>
    <label>
      <input
        type="checkbox"
        .checked=${filter.onlyTroubled}
        @change=${(event: Event) => {
          if (event.target instanceof HTMLInputElement)
            choose({ ...filter, onlyTroubled: event.target.checked })
        }}
      />
      only sets with problems
    </label>
    <output>${count} of ${shown.sets.size} sets</output>
  </form>`
}

function setPart(set: SetPicture, view: View): TemplateResult {
  const { namespace, name, ready, memory, troubles, slots } = set
  const id = `set-${set.key}`
  return html`<article class="set" aria-labelledby=${id}>
    <h2 id=${id}>
      <span class="of">${namespace}/</span>${name}
      <span class=${ready ? 'mark good' : 'mark bad'}>${ready ? 'Ready' : 'not Ready'}</span>
    </h2>
    <p class="counts">
      ${count('primaries', set.primaries)} ${count('hot backups', set.hotBackups)}
      ${count('cold backups', set.coldBackups)}
      <span>${memory === undefined ? 'keeps no memory' : `${memory.mode}, every ${memory.interval}`}</span>
    </p>
    ${
      troubles.length === 0
        ? nothing
        : html`<ul class="troubles">
      ${troubles.map(({ text, cure }) => html`<li>${text}${cure === undefined ? nothing : html`<br />→ ${cure}`}</li>`)}
    </ul>`
    }
    ${slots.length === 0 ? html`<p>It has no primaries.</p>` : slotTable(set, view)}
  </article>`
}

const count = (what: string, { inPlace, wanted }: SetPicture['primaries']) =>
  html`<span class=${inPlace < wanted ? 'bad' : ''}>${what} ${inPlace}/${wanted}</span>`

function slotTable(set: SetPicture, { at, presence, askDrill }: View): TemplateResult {
  const { memory, drill, key } = set
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Slots of ${key}">
    <table>
      <thead>
        <tr>
          <th scope="col">Slot</th>
          <th scope="col">Primary</th>
          <th scope="col">Node</th>
          <th scope="col">State</th>
          ${memory === undefined ? nothing : html`<th scope="col">Saved</th><th scope="col">Protection</th>`}
          <th scope="col">Would follow</th>
          ${drill ? html`<th scope="col">Drill</th>` : nothing}
        </tr>
      </thead>
      <tbody ${slotRows(set, { at, isPresent: presence.type === 'present', askDrill })}></tbody>
    </table>
  </div>`
}

function happenings(all: readonly (Happening & { readonly set: string })[], view: View): TemplateResult {
  if (all.length === 0) return html`<p>None is known.</p>`
  return html`<ol>
    ${repeat(
      all,
      each => `${each.set} ${each.id}`,
      each => happening(each, view),
    )}
  </ol>`
}

function happening(each: Happening & { readonly set: string }, { at }: View): TemplateResult {
  const { seconds, why, how, stateAge, outcome } = each
  const memory =
    how === undefined ? '' : `, memory ${how}${stateAge === undefined ? '' : `, ${age(stateAge)} old`}`
  const took = seconds === undefined ? `for ${age((at - each.at) / 1000)}` : `in ${duration(seconds)}`
  return html`<li class=${`happening ${outcome.replace(' ', '-')}`}>
    <p>
      <time datetime=${new Date(each.at).toISOString()}>${age((at - each.at) / 1000)} ago</time>
      <strong>${each.set}</strong> ${happeningText(each)} ${took}
      <span class="dim">(${why}${memory})</span>
    </p>
    ${each.phases.length === 0 ? nothing : phases(each, at)}
  </li>`
}

/** Width of a bar in its own units. */
const whole = 1_000

/** The phases as a bar in proportion, and in words. */
function phases(each: Happening, at: number): TemplateResult {
  const known = each.phases.reduce((sum, { seconds = 0 }) => sum + seconds, 0)
  const lasting = Math.max((at - each.at) / 1000 - known, 0)
  const all = each.phases.map(({ name, seconds }) => ({
    name,
    seconds: seconds ?? lasting,
    isOver: seconds !== undefined,
  }))
  const total = all.reduce((sum, { seconds }) => sum + seconds, 0) || 1
  const starts = all.map((_, index) => all.slice(0, index).reduce((sum, { seconds }) => sum + seconds, 0))
  const words = all.map(
    ({ name, seconds, isOver }) => `${name} ${isOver ? duration(seconds) : `${duration(seconds)} so far`}`,
  )
  return html`<div class="phases">
    <svg viewBox="0 0 ${whole} 10" preserveAspectRatio="none" aria-hidden="true">
      ${all.map(({ seconds }, index) => svg`<rect class=${`phase-${index % 6}`} x=${((starts[index] ?? 0) / total) * whole} y="0" width=${(seconds / total) * whole} height="10"></rect>`)}
    </svg>
    <ol>${words.map((word, index) => html`<li><span class=${`key phase-${index % 6}`} aria-hidden="true"></span>${word}</li>`)}</ol>
  </div>`
}
