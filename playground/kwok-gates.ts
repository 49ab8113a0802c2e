/**
 * Stands in for the gates of fake pods, which all have the address of the control plane: `kwok-gates.ts ADDRESS`. The
 * operator tries whether gates can be reached, and would tell of each that it cannot. Nothing is opened here.
 */
import { createServer } from 'node:net'
import { gatePort } from '../src/api/gate.ts'

const server = createServer(socket => {
  // Who tries says nothing and goes.
  socket.on('error', () => socket.destroy())
  socket.resume()
})
server.listen(gatePort, process.argv[2])
