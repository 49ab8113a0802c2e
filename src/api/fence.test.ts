import { describe, expect, test } from 'vitest'
import {
  apiServerVoter,
  type Fence,
  formatFence,
  isApiServer,
  nodeVoter,
  parseFence,
  partsOf,
} from './fence.ts'

const run = '00112233aabbccdd'
const of = { incarnation: 'abcd1234', epoch: 4 }
const fence: Fence = {
  term: 3,
  version: 2,
  timeoutMs: 3_000,
  voters: [nodeVoter('node-1.example.com', run), apiServerVoter({ uid: 'a', silences: 0 })],
  isArmed: true,
  isRevoked: false,
}

describe('the fence in the Lease of a slot', () => {
  test.each([
    ['with voters', fence],
    ['while its voters change', { ...fence, next: [nodeVoter('node-2', run)] }],
    ['at the beginning of a term', { ...fence, version: 0, voters: [], isArmed: false, isRevoked: false }],
  ])('what is written is read again: %s', (_, written) => {
    expect(parseFence(formatFence(written, of), of)).toEqual(written)
  })

  test.each([
    ['another format', JSON.stringify({ v: 2, ...fence })],
    ['no object', '[]'],
    ['no JSON', '{'],
    ['no voters, with a version', formatFence({ ...fence, voters: [] }, of)],
    ['voters without a version', formatFence({ ...fence, version: 0 }, of)],
    ['an empty next step', formatFence({ ...fence, next: [] }, of)],
    ['a voter with another form of run', formatFence({ ...fence, voters: ['node-1/1'] }, of)],
    ['a voter with spaces', formatFence({ ...fence, voters: [nodeVoter('node 1', run)] }, of)],
    ['a number that the sentinel refuses', formatFence({ ...fence, term: 2 ** 32 }, of)],
    [
      'more voters than the sentinel takes',
      formatFence(
        { ...fence, voters: Array.from({ length: 17 }, (_, at) => nodeVoter(`node-${at}`, run)) },
        of,
      ),
    ],
  ])('what is no fence is not read: %s', (_, text) => {
    expect(parseFence(text, of)).toBeUndefined()
  })

  test.each([
    { ...of, epoch: 5 },
    { ...of, incarnation: 'dcba4321' },
  ])('what an operator before fences has left for another primary is only a term: %j', another => {
    expect(parseFence(formatFence(fence, of), another)).toEqual({
      ...{ term: 4, version: 0, voters: [], timeoutMs: 3_000, isArmed: false, isRevoked: false },
    })
  })

  test('the API server is another voter after each statement, and after its report was made again', () => {
    const voters = [
      apiServerVoter({ uid: 'a', silences: 0 }),
      apiServerVoter({ uid: 'a', silences: 1 }),
      apiServerVoter({ uid: 'b', silences: 0 }),
    ]
    expect(new Set(voters).size).toBe(3)
    expect(voters.every(isApiServer)).toBe(true)
    expect(isApiServer(nodeVoter('api', run))).toBe(false)
    expect(partsOf(nodeVoter('node-1', run))).toEqual({ node: 'node-1', run })
  })
})
