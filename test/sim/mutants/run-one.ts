/** Reads scenarios from its standard input and prints the violations of the first one that has any. */
import { text } from 'node:stream/consumers'
import { runRound, type Scenario } from '../model/round.ts'

for (const scenario of JSON.parse(await text(process.stdin)) as readonly Scenario[]) {
  const { violations } = await runRound(scenario)
  for (const { rule, at, what } of violations) console.log(`${rule} at ${at}: ${what}`)
  if (violations.length > 0) break
}
