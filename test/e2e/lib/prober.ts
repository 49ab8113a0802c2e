/**
 * Asks a URL over and over, each time on a fresh connection, and prints one JSON line for each answer or failure.
 * Runs as a process of its own inside a node's network, where addresses of Services work:
 *   node prober.ts URL INTERVAL_MS
 */
import { request } from 'node:http'

const [, , url = '', interval = '20'] = process.argv

function probe(): void {
  const at = Date.now()
  const tell = (result: object) => console.log(JSON.stringify({ at, ms: Date.now() - at, ...result }))
  const asked = request(url, { agent: false, timeout: 1000 }, response => {
    let body = ''
    response.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    response.on('end', () =>
      tell(
        response.statusCode === 200
          ? { ok: true, ...JSON.parse(body) }
          : { ok: false, error: response.statusCode },
      ),
    )
    response.on('error', error => tell({ ok: false, error: error.message }))
  })
  asked.on('timeout', () => asked.destroy(new Error('timeout')))
  asked.on('error', error => tell({ ok: false, error: error.message }))
  asked.end()
}

setInterval(probe, Number(interval))
