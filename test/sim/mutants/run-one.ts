/**
 * Reads scenarios from its standard input, and prints the number of the first one that has violations, with these. Each line of the
 * output stands alone.
 */
import { text } from 'node:stream/consumers'
import { runRound, type Scenario } from '../model/round.ts'

for (const [index, scenario] of (JSON.parse(await text(process.stdin)) as readonly Scenario[]).entries()) {
  const { violations } = await runRound(scenario)
  if (violations.length === 0) continue
  console.log(`scenario ${index}`)
  for (const { rule, at, what } of violations) console.log(`${rule} at ${at}: ${what}`)
  break
}
