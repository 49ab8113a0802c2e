import type { FileHandle } from 'node:fs/promises'
import { connect } from 'node:net'
import { AgentError, type AgentErrorCode } from '../../api/agent-errors.ts'
import type { Clock } from '../../kube/clock.ts'
import { pathOf, placeInside } from './inside.ts'

export interface SocketOptions {
  /** Root of the container as seen from here: `/proc/PID/root`. */
  readonly root: string
  /** Directory of the socket in the container, and its name there. */
  readonly directory: string
  readonly socket: string
  /** Error code for a socket without an answer. */
  readonly failure: AgentErrorCode
  readonly clock: Clock
  readonly signal?: AbortSignal
}

const answerMs = 5_000
const longestReply = 256

/**
 * Sends one request to a socket in a container, through its mount namespace, and resolves with the whole answer.
 *
 * The connection goes to the very file that was opened and checked, see inside.ts: programs in the container must not
 * be able to direct a request, or this process, to a socket of the host.
 *
 * @throws AgentError with the given code if there is no socket, no listener or no answer; the signal's reason.
 */
export async function askSocket(options: SocketOptions, request: Buffer): Promise<string> {
  const { socket, failure, clock, signal } = options
  signal?.throwIfAborted()
  const place = await openPlace(options)
  const done = new AbortController()
  try {
    if (!(await place.stat()).isSocket()) throw new AgentError(failure, `${socket} is not a socket`)
    const late = clock
      .sleep(answerMs, done.signal)
      .then(() => Promise.reject(new AgentError(failure, `no answer in ${answerMs} ms`)))
    late.catch(() => undefined)
    const until = signal === undefined ? done.signal : AbortSignal.any([done.signal, signal])
    return await Promise.race([exchange(pathOf(place), request, until), late])
  } catch (error) {
    if (error instanceof AgentError || signal?.aborted) throw error
    throw new AgentError(failure, (error as NodeJS.ErrnoException).code, error)
  } finally {
    done.abort()
    await place.close()
  }
}

async function openPlace({ root, directory, socket, failure }: SocketOptions): Promise<FileHandle> {
  try {
    return await placeInside(root, `${directory}/${socket}`)
  } catch (error) {
    throw new AgentError(failure, `${directory}/${socket}: ${(error as NodeJS.ErrnoException).code}`, error)
  }
}

function exchange(path: string, request: Buffer, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path, signal })
    let text = ''
    socket.setEncoding('latin1')
    socket.on('error', error => reject(signal.aborted ? signal.reason : error))
    socket.once('connect', () => socket.write(request))
    socket.on('data', (chunk: string) => {
      text += chunk
      if (text.length > longestReply) socket.destroy(new Error('the answer is too long'))
    })
    socket.once('end', () => resolve(text))
    socket.once('close', () => reject(new Error('closed without an answer')))
  })
}
