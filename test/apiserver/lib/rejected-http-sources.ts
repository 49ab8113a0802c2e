/** Sets with an HTTP source of their state that the server must refuse. */

const app = { name: 'app', image: 'app' }
const pulling = (http: object = {}, spec: object = {}, pod: object = {}) => ({
  apiVersion: 'backup.example.com/v1alpha1',
  kind: 'BackupPodSet',
  metadata: { name: 'set' },
  spec: {
    checkpoint: { source: 'http', http: { port: 8080, ...http } },
    template: { spec: { containers: [app], ...pod } },
    ...spec,
  },
})
const header = (name: string, value: string) => pulling({ headers: [{ name, value }] })

export const rejectedHttpSources: readonly [string, object, RegExp][] = [
  [
    'a source that there is not',
    pulling({}, { checkpoint: { source: 'redis' } }),
    /spec\.checkpoint\.source.*supported values: "criu", "http"/,
  ],
  [
    'state over HTTP without a port',
    pulling({}, { checkpoint: { source: 'http', http: {} } }),
    /spec\.checkpoint\.http\.port: Required value/,
  ],
  [
    'state over HTTP from nowhere',
    pulling({}, { checkpoint: { source: 'http' } }),
    /add checkpoint\.http with the port/,
  ],
  [
    'a port of HTTP that nothing asks',
    pulling({}, { checkpoint: { http: { port: 8080 } } }),
    /set checkpoint\.source to http, or remove checkpoint\.http/,
  ],
  [
    'a state over HTTP that is to be kept without pods',
    pulling({}, { suspend: true }),
    /set suspend to false, or scale replicas to 0/,
  ],
  [
    'a state over HTTP that is to begin with the memory of another pod',
    pulling({}, { cloneFrom: { pod: 'web-x' } }),
    /add spec\.checkpoint with source criu .*or remove cloneFrom/,
  ],
  ['port 0', pulling({ port: 0 }), /http\.port.*greater than or equal to 1/],
  ['a path that is none', pulling({ path: 'state' }), /http\.path.*should match/],
  ['a path with another header in it', pulling({ path: '/a\r\nX: b' }), /http\.path.*should match/],
  ['a path with a fragment', pulling({ path: '/a#b' }), /http\.path.*should match/],
  ['a push to another host', pulling({ push: { path: 'http://other/' } }), /push\.path.*should match/],
  [
    'a push by GET',
    pulling({ push: { method: 'GET' } }),
    /push\.method.*supported values: "POST", "PUT", "PATCH"/,
  ],
  ['a state of a gigabyte', pulling({ maxSize: 'many' }), /http\.maxSize.*should match/],
  ['a GET without end', pulling({ timeoutSeconds: 0 }), /timeoutSeconds.*greater than or equal to 1/],
  ['a restore of a day', pulling({ restoreSeconds: 86_400 }), /restoreSeconds.*less than or equal to 3600/],
  ['a header that begins another one', header('X-A', 'b\r\nX-C: d'), /headers\[0\]\.value.*should match/],
  ['a header with a space in its name', header('X A', 'b'), /headers\[0\]\.name.*should match/],
  [
    'a length of our own',
    header('Content-Length', '0'),
    /use a header that does not describe the connection or the body/,
  ],
  [
    'another host',
    header('HOST', 'kubernetes.default'),
    /use a header that does not describe the connection or the body/,
  ],
  [
    'a frozen hot backup that is to take a request',
    pulling({}, { hotBackup: { mode: 'Frozen' } }),
    /set hotBackup\.mode to Warm or remove it, or remove checkpoint\.source/,
  ],
  [
    'pods at the addresses of nodes',
    pulling({}, {}, { hostNetwork: true }),
    /remove template\.spec\.hostNetwork or checkpoint\.source/,
  ],
  [
    "an agent's clock where no agent is needed",
    pulling(
      {},
      { failover: { liveness: {} } },
      { containers: [{ ...app, livenessProbe: { tcpSocket: { port: 80 } } }] },
    ),
    /remove failover\.liveness or checkpoint\.source/,
  ],
]
