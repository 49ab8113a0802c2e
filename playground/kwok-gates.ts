/**
 * Simulates the gates of fake pods, which all have the address of the control plane: `kwok-gates.ts ADDRESS`. The
 * operator probes whether gates can be reached and would report each of them otherwise. This server opens no gate.
 */
import { createServer } from 'node:net'
import { gatePort } from '../src/api/gate.ts'

const server = createServer(socket => {
  // A probe sends nothing and disconnects.
  socket.on('error', () => socket.destroy())
  socket.resume()
})
server.listen(gatePort, process.argv[2])
