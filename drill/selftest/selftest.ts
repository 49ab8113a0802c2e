/** Checks the checker: forged histories must be caught, honest ones must pass. */
import { check } from '../check/check.ts'
import { forgeries } from './forged.ts'
import { honest, plain } from './honest.ts'

export interface Finding {
  readonly title: string
  readonly isRight: boolean
  readonly says: string
}

const honestRounds = 50

export function selftest(): Finding[] {
  const forged = forgeries.map(({ title, rule, history }): Finding => {
    const found = [...new Set(check(history()).violations.map(violation => violation.rule))]
    return {
      title,
      isRight: found.includes(rule),
      says: `${rule}: ${found.length === 0 ? 'not caught' : found.join(', ')}`,
    }
  })
  const wrong = Array.from({ length: honestRounds }, (_, seed) => ({
    seed,
    violations: check(honest({ ...plain, seed, takeovers: seed % 4, slots: 1 + (seed % 3) })).violations,
  })).filter(({ violations }) => violations.length > 0)
  return [
    ...forged,
    {
      title: `${honestRounds} honest histories`,
      isRight: wrong.length === 0,
      says: wrong
        .flatMap(({ seed, violations }) =>
          violations.map(({ rule, says }) => `seed ${seed}: ${rule}: ${says}`),
        )
        .join('; '),
    },
  ]
}
