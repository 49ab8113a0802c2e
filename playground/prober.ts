/**
 * A client of a Service. It runs inside a node's network, where Services' addresses work:
 *   node prober.ts URL PERIOD_MS [USER_AGENT]
 * Opens a new connection for each request, like a client that knows only the address. Prints one line of JSON a
 * request: `at` (its start, ms since the epoch), `ms` (its duration), and `body` or `error`. Ends when its standard
 * input does, so that it never outlives the process that started it.
 */
import { get } from 'node:http'

const [url = '', period = '50', userAgent = 'prober'] = process.argv.slice(2)
const patienceMs = 1_000

function probe(): void {
  const at = Date.now()
  const started = performance.now()
  let told = false
  const tell = (result: { body: string } | { error: string }) => {
    if (told) return
    told = true
    const ms = Math.round((performance.now() - started) * 10) / 10
    process.stdout.write(`${JSON.stringify({ at, ms, ...result })}\n`)
  }
  const request = get(
    url,
    { agent: false, headers: { 'user-agent': userAgent }, signal: AbortSignal.timeout(patienceMs) },
    response => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text
      })
      response.on('end', () =>
        tell(response.statusCode === 200 ? { body } : { error: `status ${response.statusCode}` }),
      )
      response.on('error', error => tell({ error: error.message }))
    },
  )
  request.on('error', error => tell({ error: error.message }))
}

setInterval(probe, Number(period))
process.stdin.resume()
process.stdin.on('end', () => process.exit())
