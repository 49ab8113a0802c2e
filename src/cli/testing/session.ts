import { createFakeClock } from '../../kube/clock.ts'
import { seededRandom } from '../../kube/random.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import type { Session } from '../session.ts'
import { recordingTerminal } from './terminal.ts'

/** A session of the namespace `shop`. Calls to the API server fail where a test answers none. */
export function makeSession(over: Partial<Session> = {}): Session {
  const { terminal = recordingTerminal() } = over
  return {
    api: fakeApi(),
    server: 'https://api:6443',
    namespace: 'shop',
    output: 'text',
    version: '0.1.0',
    terminal,
    progress: terminal.progress,
    clock: createFakeClock(),
    random: seededRandom(1),
    signal: new AbortController().signal,
    call: {},
    ...over,
  }
}
