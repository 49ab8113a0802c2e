import { describe, expect, it } from 'vitest'
import { signerFault, signersAfter, signersNow } from './signers.ts'

const [a, b] = ['a'.repeat(64), 'b'.repeat(64)]
const none = () => false
const by = (epoch: number, fingerprint?: string) => ({ epoch, fingerprint })

describe('whose signature counts', () => {
  it('anybody, where an operator of an earlier version wrote the Lease', () => {
    expect(signerFault({ epoch: 3 }, 3, undefined)).toBeUndefined()
    expect(signerFault({ epoch: 3 }, 2, a)).toBeUndefined()
  })

  it('only that of the epoch', () => {
    const lease = { epoch: 4, signers: [by(4, a), by(3, b)] }
    expect(signerFault(lease, 4, a)).toBeUndefined()
    expect(signerFault(lease, 3, b)).toBeUndefined()
    expect(signerFault(lease, 4, b)).toMatch(/saved by a/)
    expect(signerFault(lease, 3, undefined)).toMatch(/not signed/)
    expect(signerFault(lease, 2, b)).toMatch(/does not name the signer/)
    expect(signerFault(lease, 2, undefined)).toMatch(/does not name the signer/)
  })

  it('of epochs in which nobody signed nothing is asked, nor of those before them', () => {
    const lease = { epoch: 4, signers: [by(4, a), by(3)] }
    expect(signerFault(lease, 3, undefined)).toBeUndefined()
    expect(signerFault(lease, 2, undefined)).toBeUndefined()
    expect(signerFault(lease, 4, undefined)).toMatch(/not signed/)
    const mixed = { epoch: 4, signers: [by(4), by(3, a)] }
    expect(signerFault(mixed, 2, undefined)).toMatch(/does not name the signer/)
  })

  it('of either key, where a node has another one than before', () => {
    const lease = { epoch: 4, signers: signersNow({ epoch: 4, signers: [by(4, a)] }, b, false, none) ?? [] }
    expect(lease.signers).toEqual([by(4, b), by(4, a)])
    expect(signerFault(lease, 4, a)).toBeUndefined()
    expect(signerFault(lease, 4, b)).toBeUndefined()
  })
})

describe('the signers of a slot', () => {
  it('are known from its first generation on, where its agent signs', () => {
    expect(signersNow({ epoch: 1 }, a, true, none)).toEqual([by(1, a)])
    expect(signersNow({ epoch: 1 }, undefined, true, none)).toBeUndefined()
  })

  it('rolling upgrade: nothing has to be signed before somebody has what is', () => {
    expect(signersNow({ epoch: 3 }, a, false, none)).toBeUndefined()
    expect(signersNow({ epoch: 3, signers: [by(3)] }, a, false, none)).toEqual([by(3)])
    expect(signersNow({ epoch: 3, signers: [by(3), by(2, b)] }, a, true, none)).toEqual([by(3, a), by(2, b)])
  })

  it('go along to the next epoch, that of an agent which signed nothing, too', () => {
    expect(signersAfter({ epoch: 3 }, by(4, a), none)).toEqual([by(4, a), by(3)])
    expect(signersAfter({ epoch: 3, signers: [by(3, b)] }, by(4), none)).toEqual([by(4), by(3, b)])
  })

  it('are as many as a Lease can hold', () => {
    let signers = [by(1, a)]
    for (let epoch = 1; epoch < 100; epoch += 1)
      signers = [...signersAfter({ epoch, signers }, by(epoch + 1, a), none)].map(each =>
        by(each.epoch, each.fingerprint),
      )
    expect(signers).toHaveLength(32)
    expect(signers[0]).toEqual(by(100, a))
  })

  describe('D7.signers: stay for as long as anybody has memory of theirs', () => {
    const following = (
      epochs: number,
      first: ReturnType<typeof by>,
      isKeptOf: (epoch: number) => boolean,
    ) => {
      let signers: readonly ReturnType<typeof by>[] = [first]
      for (let epoch = 1; epoch <= epochs; epoch += 1)
        signers = signersAfter({ epoch, signers }, by(epoch + 1, b), isKeptOf).map(each =>
          by(each.epoch, each.fingerprint),
        )
      return { epoch: epochs + 1, signers }
    }
    it('however many epochs have followed in which nothing was saved', () => {
      const lease = following(99, by(1, a), epoch => epoch === 1)
      expect(lease.signers).toHaveLength(33)
      expect(signerFault(lease, 1, a)).toBeUndefined()
      expect(signerFault(lease, 1, b)).toMatch(/saved by a/)
      expect(signerFault(lease, 2, b)).toMatch(/does not name the signer/)
    })
    it('also where nobody signed then, and before', () => {
      expect(signerFault({ ...following(99, by(1), none) }, 0, undefined)).toBeUndefined()
    })
    it('and no Lease becomes too large', () => {
      expect(following(1_100, by(1, a), () => true).signers).toHaveLength(1024)
    })
  })
})
