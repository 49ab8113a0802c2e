/**
 * The counter of images/counter as a Node.js program: GET / adds one, GET /peek does not, GET /healthz. Besides the
 * count it keeps a running timer, a growing Map and the contents of a file, as real programs do.
 */
import { appendFileSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { hostname } from 'node:os'

const port = Number(process.env.PORT ?? 8080)
const notebook = process.env.NOTEBOOK
let count = 0
let ticks = 0
const visitors = new Map()
setInterval(() => {
  ticks += 1
}, 100)

const server = createServer((request, response) => {
  const path = request.url ?? '/'
  if (path === '/healthz') return response.end('ok')
  if (path === '/crash') process.exit(7)
  if (path === '/') {
    count += 1
    visitors.set(count, request.headers['user-agent'] ?? '')
    if (notebook) appendFileSync(notebook, `${count}\n`)
  }
  const noted = notebook ? readFileSync(notebook, 'utf8').split('\n').length - 1 : undefined
  response.setHeader('content-type', 'application/json')
  response.end(
    JSON.stringify({ count, pid: process.pid, host: hostname(), ticks, visitors: visitors.size, noted }),
  )
})
server.listen(port, () => console.log(`listening on ${port}`))
process.on('SIGTERM', () => process.exit(0))
