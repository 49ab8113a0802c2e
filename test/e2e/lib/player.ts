/** A player of samples/by-use/game-server.yaml: sends a packet at a steady pace from one socket, and keeps the answers. */
import { createSocket } from 'node:dgram'

export interface Moment {
  /** Monotonic ms of the answer. */
  readonly at: number
  readonly seq: number
  readonly tick: number
  readonly x: number
  readonly packets: number
  readonly players: number
}

export interface Player extends AsyncDisposable {
  readonly moments: readonly Moment[]
  /** The last answer. @throws Error if there is none */
  last(): Moment
}

const periodMs = 50

export async function play(host: string, port: number, player: string): Promise<Player> {
  const moments: Moment[] = []
  const socket = createSocket('udp4')
  socket.on('message', bytes => {
    const answer = JSON.parse(bytes.toString()) as Omit<Moment, 'at'>
    moments.push({ at: performance.now(), ...answer })
  })
  // While a pod changes, the network may refuse a packet; the next one follows.
  socket.on('error', () => {})
  await new Promise<void>(resolve => socket.bind(0, resolve))
  let seq = 0
  const timer = setInterval(() => {
    seq += 1
    socket.send(JSON.stringify({ player, seq, speed: 1 }), port, host)
  }, periodMs)
  return {
    moments,
    last: () => {
      const moment = moments.at(-1)
      if (moment === undefined) throw new Error('no answer of the game')
      return moment
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await new Promise<void>(resolve => socket.close(resolve))
    },
  }
}
