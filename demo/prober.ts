/**
 * A client of the Service: `node prober.ts URL PERIOD_MS USER_AGENT`. Opens a new connection for each request, as a
 * client that knows only the Service's address would. One line of JSON a request on standard output: how many
 * milliseconds it took, and the error if there was one. Ends when standard input does.
 */
import { get } from 'node:http'

const [url = '', period = '50', userAgent = 'prober'] = process.argv.slice(2)
const patienceMs = 1_000

function probe(): void {
  const started = performance.now()
  let told = false
  const tell = (error?: string) => {
    if (told) return
    told = true
    const ms = Math.round((performance.now() - started) * 10) / 10
    process.stdout.write(`${JSON.stringify({ ms, ...(error !== undefined && { error }) })}\n`)
  }
  const request = get(
    url,
    { agent: false, headers: { 'user-agent': userAgent }, signal: AbortSignal.timeout(patienceMs) },
    response => {
      response.resume()
      response.on('end', () =>
        tell(response.statusCode === 200 ? undefined : `status ${response.statusCode}`),
      )
      response.on('error', error => tell(error.message))
    },
  )
  request.on('error', error => tell(error.message))
}

setInterval(probe, Number(period))
process.stdin.resume()
process.stdin.on('end', () => process.exit())
