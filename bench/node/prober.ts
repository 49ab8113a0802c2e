/**
 * Runs in a node's network namespace: `prober.ts <address> <port> <interval ms> <limit ms> <http|redis>`. Every interval it
 * makes one fresh TCP connection and one request, on schedule even if the last answer has not come: a GET, or the number of
 * keys of a redis. It prints one line of JSON for each when it is over. It ends with its standard input, so that it never
 * outlives the bench.
 */
import { connect } from 'node:net'

const [address = '', port = '', interval = '', limit = '', protocol = ''] = process.argv.slice(2)
const isRedis = protocol === 'redis'

function probe(): void {
  const began = performance.timeOrigin + performance.now()
  let answer = ''
  let isOver = false
  const socket = connect({ host: address, port: Number(port), noDelay: true })
  const over = (result: { host: string; count: number } | { error: string }): void => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    socket.destroy()
    const ms = performance.timeOrigin + performance.now() - began
    process.stdout.write(`${JSON.stringify({ at: began, ms, ...result })}\n`)
  }
  const timer = setTimeout(() => over({ error: 'timeout' }), Number(limit))
  socket.setEncoding('latin1')
  socket.on('connect', () => socket.write(isRedis ? 'DBSIZE\r\n' : 'GET / HTTP/1.0\r\n\r\n'))
  socket.on('data', (text: string) => {
    answer += text
    // A redis keeps the connection open.
    const keys = isRedis ? /^:(\d+)\r\n/.exec(answer)?.[1] : undefined
    if (keys !== undefined) over({ host: 'redis', count: Number(keys) })
  })
  socket.on('error', (error: NodeJS.ErrnoException) => over({ error: error.code ?? error.message }))
  socket.on('close', () => {
    const host = /"host":"([^"]*)"/.exec(answer)?.[1]
    const count = Number(/"count":(\d+)/.exec(answer)?.[1])
    over(answer.startsWith('HTTP/1.1 200') && host !== undefined ? { host, count } : { error: 'no answer' })
  })
}

// Ctrl-C reaches the whole group, so ignore it: the parent ends this process after its own clean-up.
process.on('SIGINT', () => {})
process.stdin.on('end', () => process.exit(0))
process.stdin.on('error', () => process.exit(0))
process.stdin.resume()
setInterval(probe, Number(interval))
