/**
 * Runs in a node's network namespace: `kept-client.ts <address> <port> <clients> <pause ms> <limit ms>`. Each client
 * keeps one HTTP connection and sends its next request some ms after the last answer. When the connection breaks, or an
 * answer takes longer than the limit, it connects again at once; after an attempt that was refused, 5 ms later (ten clients without a pause would keep a processor busy). It
 * prints a line of JSON for each break, once it is served again (`Break`), and one for each client's first answer.
 * It ends with its standard input, so that it never outlives the bench.
 */
import { connect, type Socket } from 'node:net'
import type { Break } from './kept.ts'

const [address = '', port = '', clients = '', pause = '', limit = ''] = process.argv.slice(2)
const now = () => performance.timeOrigin + performance.now()
const tell = (line: Break | { readonly up: true }) => process.stdout.write(`${JSON.stringify(line)}\n`)
const afterRefusalMs = 5

function open(broken: Omit<Break, 'servedAt'> | undefined): void {
  let isServed = false
  let isOver = false
  let text = ''
  let timer: NodeJS.Timeout | undefined
  const socket: Socket = connect({ host: address, port: Number(port), noDelay: true })
  const over = (error: string): void => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    socket.destroy()
    if (isServed) {
      open({ at: now(), error, attempts: 1, failed: [] })
      return
    }
    // A client that was never served has lost nothing yet.
    const next = broken && { ...broken, attempts: broken.attempts + 1, failed: [...broken.failed, error] }
    setTimeout(() => open(next), afterRefusalMs)
  }
  const ask = () => {
    if (isOver) return
    timer = setTimeout(() => over('timeout'), Number(limit))
    socket.write('GET / HTTP/1.1\r\nHost: bench\r\n\r\n')
  }
  socket.setEncoding('latin1')
  socket.on('data', (data: string) => {
    text += data
    if (!text.trimEnd().endsWith('}')) return
    if (!text.startsWith('HTTP/1.1 200')) {
      over('no answer')
      return
    }
    text = ''
    clearTimeout(timer)
    if (!isServed) tell(broken === undefined ? { up: true } : { ...broken, servedAt: now() })
    isServed = true
    setTimeout(ask, Number(pause))
  })
  socket.on('error', (error: NodeJS.ErrnoException) => over(error.code ?? error.message))
  socket.on('close', () => over('closed'))
  // The limit counts from the connect: a SYN that is lost is repeated after a second.
  ask()
}

// Ctrl-C reaches the whole group, so ignore it: the parent ends this process after its own clean-up.
process.on('SIGINT', () => {})
process.stdin.on('end', () => process.exit(0))
process.stdin.on('error', () => process.exit(0))
process.stdin.resume()
for (let each = 0; each < Number(clients); each += 1)
  setTimeout(() => open(undefined), (each * Number(pause)) / Number(clients))
