/** Memory that ends its app wherever it is restored. */
import { describe, expect, it } from 'vitest'
import { migratingPods } from '../../../src/api/migrating-pod.ts'
import { pods } from '../../../src/kube/resources.ts'
import { addressOf } from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { needsNodes } from '../lib/cluster.ts'
import { create, podNamed, saved } from '../lib/migrating-pods.ts'
import { createWorld } from '../lib/world.ts'

/** Ends in every other pod than the one in which it was started, once it is poisoned. */
const program = `
import http.server, os, socket, threading, time
home = socket.gethostname()
poison = []
def end_elsewhere():
    if poison and socket.gethostname() != home:
        os._exit(3)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        # Before the thread below has run, which a busy machine delays.
        end_elsewhere()
        if self.path == "/poison":
            poison.append(1)
        body = str(len(poison)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
def watch():
    while True:
        time.sleep(0.002)
        end_elsewhere()
threading.Thread(target=watch, daemon=True).start()
http.server.ThreadingHTTPServer(("0.0.0.0", 8080), Handler).serve_forever()
`

const template = {
  metadata: { labels: { app: 'poisoned' } },
  spec: {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 5,
    containers: [
      {
        name: 'app',
        image: 'understudy.invalid/zoo:0.1.0',
        imagePullPolicy: 'IfNotPresent',
        command: ['/usr/bin/python3', '-c', program],
        ports: [{ containerPort: 8080 }],
        readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 },
      },
    ],
  },
}

describe.skipIf(needsNodes())('MP-35: memory that ends its app before it answers', () => {
  it('is resumed twice in a pod, and then the MigratingPod tells it', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    await create(world, 'poisoned', { template, checkpoint: { interval: '60s' } })
    await saved(world, 'poisoned', 'poisoned-0')
    const first = await podNamed(world, 'poisoned-0')
    await fetch(`http://${addressOf(first)}:8080/poison`)
    // The next pod gets what is saved now.
    await api.delete(pods, { namespace, name: 'poisoned-0' })
    await eventually(async () => {
      const { status: now } = await api.get(migratingPods, { namespace, name: 'poisoned' })
      expect(now?.conditions, JSON.stringify(now)).toContainEqual(
        expect.objectContaining({
          ...{ type: 'Ready', status: 'False', reason: 'RestoreFailed' },
          message: expect.stringContaining('ended before it answered'),
        }),
      )
    }, 180_000)
  })
})
