import { createServer } from 'node:net'

/** Returns a TCP port of the loopback that is free at this moment. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => {
        if (address === null || typeof address === 'string') reject(new Error('no TCP address'))
        else resolve(address.port)
      })
    })
  })
}
