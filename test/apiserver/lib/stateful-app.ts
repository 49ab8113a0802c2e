/** An HTTP server whose state is one text, at addresses of the loopback network: the app of a fake kubelet's pods. */
import { createServer, type Server } from 'node:http'
import type { Pod } from '../../../src/kube/resources.ts'

export interface StatefulApps {
  /** State of each pod's app, by pod name. */
  readonly state: Map<string, string>
  /** Bodies that each app received, in order. */
  readonly given: Map<string, string[]>
  /** Pods that answer a GET, or a POST, with 500. */
  readonly mute: Set<string>
  readonly deaf: Set<string>
  /** Number of GETs to each pod so far. */
  readonly asked: Map<string, number>
  start(pod: Pod, address: string): Server
}

export const statePort = 18_080

export function createStatefulApps(): StatefulApps {
  const apps: StatefulApps = {
    state: new Map(),
    given: new Map(),
    mute: new Set(),
    deaf: new Set(),
    asked: new Map(),
    start({ metadata: { name } }, address) {
      apps.state.set(name, '')
      return createServer((request, response) => {
        if (request.method === 'GET') {
          apps.asked.set(name, (apps.asked.get(name) ?? 0) + 1)
          response.writeHead(apps.mute.has(name) ? 500 : 200, { 'content-type': 'text/x-state' })
          response.end(apps.state.get(name))
          return
        }
        let body = ''
        request.on('data', chunk => {
          body += String(chunk)
        })
        request.on('end', () => {
          const isTaken = !apps.deaf.has(name) && request.headers['content-type'] === 'text/x-state'
          if (isTaken) {
            apps.state.set(name, body)
            apps.given.set(name, [...(apps.given.get(name) ?? []), body])
          }
          response.writeHead(isTaken ? 204 : 500).end()
        })
      }).listen(statePort, address)
    },
  }
  return apps
}
