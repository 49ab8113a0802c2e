import { describe, expect, it } from 'vitest'
import { apiServerVoter, type Fence, formatFence, nodeVoter, parseFence } from '../../../api/fence.ts'
import { voteOf } from '../../testing/votes.ts'
import type { NodeView } from '../memory-view.ts'
import { isFenced } from './fenced.ts'
import { fenceOfSuccessor, nextFence, type Wanted, wantedVoters } from './voters.ts'

const view = (node: string, over: { readonly run?: string | undefined; readonly ready?: boolean } = {}) =>
  [
    node,
    { ready: over.ready ?? true, vote: { ...voteOf(node), ...('run' in over && { run: over.run }) } },
  ] as const
type View = Pick<NodeView, 'ready' | 'silent' | 'vote'>
const viewsOf = (...views: (readonly [string, View])[]) => new Map<string, View>(views)

const of = { incarnation: 'abcd1234', epoch: 1 }
const api = apiServerVoter(voteOf('n1'))
const voterOf = (node: string) => nodeVoter(node, voteOf(node).run)

describe('who votes on a primary', () => {
  it('D8.voters: is the API server, and each holder that votes and whose agent is ready', () => {
    const nodes = viewsOf(
      view('n1'),
      view('n2'),
      view('n3', { ready: false }),
      view('n4', { run: undefined }),
      view('n5'),
    )
    expect(wantedVoters(nodes, 'n1', ['n2', 'n3', 'n4', 'n5', 'n6'])).toEqual(
      [api, voterOf('n2'), voterOf('n5')].sort(),
    )
  })

  it.each([
    ['no holder votes', viewsOf(view('n1'), view('n2', { ready: false })), 'n1'],
    ['the sentinel of its own node takes no part', viewsOf(view('n1', { run: undefined }), view('n2')), 'n1'],
    ['its node has no report', viewsOf(view('n2')), 'n1'],
    ['it has no node yet', viewsOf(view('n2')), undefined],
  ])('is nobody where %s', (_, nodes, source) => {
    expect(wantedVoters(nodes, source, ['n2'])).toEqual([])
  })

  it('is a holder whose agent is being replaced, if it votes already and its agent is not silent', () => {
    const nodes = (silent: boolean) =>
      viewsOf(view('n1'), ['n2', { ...view('n2', { ready: false })[1], silent }])
    const now = [api, voterOf('n2')]
    expect(wantedVoters(nodes(false), 'n1', ['n2'], now)).toEqual([...now].sort())
    expect(wantedVoters(nodes(false), 'n1', ['n2'], [api])).toEqual([])
    expect(wantedVoters(nodes(true), 'n1', ['n2'], now)).toEqual([])
  })

  it('is another voter after a statement, and after the sentinel has lost its promises', () => {
    const before = wantedVoters(viewsOf(view('n1'), view('n2')), 'n1', ['n2'])
    const stated = viewsOf(['n1', { ready: true, vote: { ...voteOf('n1'), silences: 1 } }], view('n2'))
    expect(wantedVoters(stated, 'n1', ['n2'])).not.toEqual(before)
    const other = viewsOf(view('n1'), view('n2', { run: 'f'.repeat(16) }))
    expect(wantedVoters(other, 'n1', ['n2'])).not.toEqual(before)
  })

  it('is few enough for the sentinel, also while the voters change', () => {
    const names = (from: number) => Array.from({ length: 20 }, (_, index) => `n${from + index}`)
    const all = viewsOf(view('n1'), ...[...names(10), ...names(40)].map(name => view(name)))
    const first = wantedVoters(all, 'n1', names(10))
    const next = wantedVoters(all, 'n1', names(40))
    const fence: Fence = {
      term: 1,
      version: 2,
      voters: first,
      next,
      timeoutMs: 3_000,
      isArmed: true,
      isRevoked: false,
    }
    expect(parseFence(formatFence(fence, of), of)).toEqual(fence)
  })
})

const [a, b, c] = [api, voterOf('n2'), voterOf('n3')]
const wanted: Wanted = {
  voters: [a, b],
  timeoutMs: 3_000,
  acknowledged: undefined,
  isRecovered: false,
  isUnwanted: false,
  isReachable: true,
}
const first: Fence = {
  term: 1,
  version: 1,
  voters: [a, b],
  timeoutMs: 3_000,
  isArmed: false,
  isRevoked: false,
}
const armed: Fence = { ...first, isArmed: true, isRevoked: false }
const acknowledged = { term: 1, version: 1 }

describe('the fence in a Lease', () => {
  it('begins with the first voters', () => {
    expect(nextFence(undefined, wanted)).toEqual(first)
    expect(nextFence(undefined, { ...wanted, voters: [] })).toBeUndefined()
    expect(nextFence(undefined, { ...wanted, timeoutMs: undefined })).toBeUndefined()
  })

  it('is armed once the sentinel has acknowledged a version of its term, for the rest of the term', () => {
    expect(nextFence(first, wanted)).toEqual(first)
    expect(nextFence(first, { ...wanted, acknowledged: { term: 2, version: 1 } })).toEqual(first)
    expect(nextFence(first, { ...wanted, acknowledged })).toEqual(armed)
    expect(nextFence(armed, wanted)).toEqual(armed)
  })

  it('D8.voters: changes its voters in two steps, of which the second waits for the sentinel', () => {
    const other = { ...wanted, voters: [a, c] }
    const joint = nextFence(armed, { ...other, acknowledged })
    expect(joint).toEqual({ ...armed, version: 2, next: [a, c].sort() })
    expect(nextFence(joint, { ...other, acknowledged })).toEqual(joint)
    expect(nextFence(joint, { ...other, acknowledged: { term: 1, version: 2 } })).toEqual({
      ...armed,
      ...{ version: 3, voters: [a, c].sort() },
    })
    // Meanwhile a takeover asks the first set.
    expect(joint && isFenced(joint, new Set([a, b]))).toBe(true)
    expect(joint && isFenced(joint, new Set([a, c]))).toBe(false)
  })

  it('D8.voters: ends where nobody votes any more, and its term is remembered', () => {
    const ended = { term: 2, version: 0, voters: [], timeoutMs: 3_000, isArmed: false, isRevoked: false }
    expect(nextFence(armed, { ...wanted, voters: [] })).toEqual(ended)
    expect(nextFence(armed, { ...wanted, timeoutMs: undefined })).toEqual(ended)
    expect(nextFence(ended, { ...wanted, voters: [] })).toEqual(ended)
    expect(nextFence(ended, wanted)).toEqual({ ...first, term: 2 })
    expect(parseFence(formatFence(ended, of), of)).toEqual(ended)
  })

  it('begins a new term with another time-out, and for a primary that serves on', () => {
    expect(nextFence(armed, { ...wanted, timeoutMs: 5_000, acknowledged })).toEqual({
      ...first,
      ...{ term: 2, timeoutMs: 5_000 },
    })
    expect(nextFence(armed, { ...wanted, isRecovered: true, acknowledged })).toEqual({ ...first, term: 2 })
  })

  it('begins a new term without voters with each takeover', () => {
    expect(fenceOfSuccessor(armed)).toEqual({
      ...{ term: 2, version: 0, voters: [], timeoutMs: 3_000, isArmed: false, isRevoked: false },
    })
    expect(fenceOfSuccessor(undefined)).toBeUndefined()
  })
})
