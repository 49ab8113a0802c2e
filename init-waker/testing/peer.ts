import { createConnection, type NetConnectOpts, type Socket } from 'node:net'

/** One end of a connection to the program under test. */
export interface Peer {
  readonly socket: Socket
  /** Sends bytes and waits until the kernel has them. */
  send(bytes: string | Uint8Array): Promise<void>
  /** Everything received until the other end closed or reset the connection. */
  readonly reply: Promise<string>
}

/** @throws the error of the connect. */
export function connect(target: number | NetConnectOpts): Promise<Peer> {
  const socket = createConnection(typeof target === 'number' ? { host: '127.0.0.1', port: target } : target)
  // Sends single bytes as single segments.
  socket.setNoDelay(true)
  let received = ''
  socket.on('data', chunk => {
    received += chunk.toString()
  })
  const reply = new Promise<string>(resolve => socket.on('close', () => resolve(received)))
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      // The program may reset after its reply; a reset instead of it shows as an empty reply.
      socket.on('error', () => {})
      resolve({
        socket,
        reply,
        send: bytes =>
          new Promise(sent => {
            // Ignores EPIPE and the like: the reply shows the result.
            socket.write(bytes, () => sent())
          }),
      })
    })
  })
}

/** Connects, sends, and resolves with the whole reply. */
export async function exchange(target: number | NetConnectOpts, bytes: string | Uint8Array): Promise<string> {
  const peer = await connect(target)
  await peer.send(bytes)
  return peer.reply
}
