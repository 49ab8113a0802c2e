/** Applications that need more from a pod, or from the kernel, than a single-process server does. */
import { answerOf, httpSpecimen, must, numberIn, type Specimen } from './http-specimen.ts'

const every = { periodSeconds: 1 } as const
const ofGrpc = { grpc: { port: 8080 }, ...every }
const ofHttp = { httpGet: { path: '/healthz', port: 8080 }, ...every }
const ofCommand = { exec: { command: ['/zoo/kinds', 'probe'] }, ...every }

const goesOn = async (ip: string, key: string): Promise<void> => {
  const before = numberIn(await answerOf(ip, 8080, '/peek'), key)
  await new Promise(resolve => setTimeout(resolve, 500))
  if (numberIn(await answerOf(ip, 8080, '/peek'), key) <= before) throw new Error(`${key} stand still`)
}

export const demanding: readonly Specimen[] = [
  // Go's listeners are MPTCP sockets by default; this turns that off.
  httpSpecimen(
    'go',
    'counter',
    {
      command: ['/zoo/counter'],
      env: [{ name: 'GODEBUG', value: 'multipathtcp=0' }],
      startupProbe: { ...ofGrpc, failureThreshold: 30 },
      readinessProbe: ofGrpc,
      livenessProbe: ofGrpc,
    },
    {
      check: async (ip, value) => {
        must('the map', (await answerOf(ip, 8080, '/peek'))['visitors'], value)
        await goesOn(ip, 'ticks')
        await goesOn(ip, 'awake')
      },
    },
  ),
  // A master that runs as root, and workers of another user.
  httpSpecimen(
    'nginx',
    'nginx',
    {
      command: ['/usr/sbin/nginx', '-c', '/zoo/nginx.conf'],
      startupProbe: { ...ofHttp, failureThreshold: 30 },
      livenessProbe: ofHttp,
      lifecycle: {
        preStop: { exec: { command: ['/usr/sbin/nginx', '-c', '/zoo/nginx.conf', '-s', 'quit'] } },
      },
    },
    {
      check: async ip => {
        const workers = new Set<unknown>()
        for (let i = 0; i < 40; i += 1) workers.add((await answerOf(ip, 8080, '/peek'))['worker'])
        if (workers.size === 0) throw new Error('no worker answers')
      },
    },
  ),
  httpSpecimen(
    'kinds',
    'kinds',
    {
      command: ['/zoo/kinds'],
      env: [{ name: 'FILES', value: '/files' }],
      volumeMounts: [{ name: 'files', mountPath: '/files' }],
      readinessProbe: ofCommand,
      livenessProbe: ofCommand,
    },
    {
      pod: { volumes: [{ name: 'files', emptyDir: {} }] },
      check: async ip => {
        const kinds = Object.entries(await answerOf(ip, 8080, '/peek'))
        const broken = kinds.filter(([, works]) => works === false).map(([kind]) => kind)
        must('what does not work any more', broken.join(', '), '')
        must('the number of kinds', kinds.filter(([, works]) => works === true).length, 23)
      },
    },
  ),
  // Its socket is bound to the pod's address, which differs in each pod.
  httpSpecimen('pod-address', 'python3', {
    command: ['/usr/bin/python3', '/zoo/server.py'],
    env: [{ name: 'HOST', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
  }),
]

/** Specimens that need several containers or an image of their own: for `npm run zoo`. */
export const costly: readonly Specimen[] = [
  // All other fields that a pod may have.
  httpSpecimen(
    'fields',
    'python3',
    {
      command: ['/usr/bin/python3'],
      args: ['$(SERVER)'],
      env: [
        { name: 'SERVER', value: '/zoo/server.py' },
        { name: 'NOTEBOOK', value: '/data/notebook' },
        { name: 'NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
        { name: 'LIMIT', valueFrom: { resourceFieldRef: { resource: 'limits.memory' } } },
      ],
      stdin: true,
      workingDir: '/data',
      terminationMessagePath: '/dev/end',
      resources: { requests: { memory: '64Mi' }, limits: { memory: '128Mi' } },
      lifecycle: {
        postStart: { exec: { command: ['/usr/bin/sh', '-c', 'echo once >> /memory/started'] } },
        preStop: { sleep: { seconds: 1 } },
      },
      volumeMounts: [
        { name: 'data', mountPath: '/data', subPath: 'inner/most' },
        { name: 'memory', mountPath: '/memory' },
        { name: 'about', mountPath: '/about', readOnly: true },
      ],
    },
    {
      pod: {
        hostname: 'dressed',
        subdomain: 'up',
        enableServiceLinks: false,
        terminationGracePeriodSeconds: 6,
        hostAliases: [{ ip: '127.0.0.9', hostnames: ['nine'] }],
        dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
        tolerations: [{ key: 'any', operator: 'Exists' }],
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: 'kubernetes.io/hostname',
            whenUnsatisfiable: 'ScheduleAnyway',
            labelSelector: { matchLabels: { app: 'fields' } },
          },
        ],
        securityContext: {
          runAsUser: 1000,
          runAsGroup: 1000,
          fsGroup: 2000,
          supplementalGroups: [3000],
          sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }],
        },
        volumes: [
          { name: 'data', emptyDir: {} },
          { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '8Mi' } },
          {
            name: 'about',
            projected: {
              sources: [
                { downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
              ],
            },
          },
        ],
        initContainers: [
          {
            name: 'first',
            image: 'understudy.invalid/zoo:0.1.0',
            command: ['/usr/bin/sh', '-c', 'echo >> /memory/first'],
            volumeMounts: [{ name: 'memory', mountPath: '/memory' }],
          },
          {
            name: 'sidecar',
            image: 'understudy.invalid/zoo:0.1.0',
            restartPolicy: 'Always',
            command: ['/zoo/prefork', '8082'],
          },
        ],
      },
      check: async (ip, value) => {
        must('lines in the notebook', (await answerOf(ip, 8080, '/peek'))['noted'], value)
        const text = async (path: string) => (await answerOf(ip, 8080, `/cat${path}`))['text']
        must('runs of postStart', await text('/memory/started'), 'once\n')
        // These are the pod's own values, not those of the pod whose memory it restored.
        const name = String(await text('/about/name'))
        must('the pod of the projected volume', name.startsWith('fields-'), true)
        must('the aliases', String(await text('/etc/hosts')).includes('nine'), true)
        must('the host', (await answerOf(ip, 8080, '/peek'))['host'], 'dressed')
        must('the sidecar', numberIn(await answerOf(ip, 8082, '/peek'), 'count'), 0)
      },
    },
  ),
  httpSpecimen(
    'java',
    'java',
    { image: 'understudy.invalid/zoo-java:0.1.0' },
    {
      check: async (ip, value) => {
        must('the map', (await answerOf(ip, 8080, '/peek'))['visitors'], value)
        await goesOn(ip, 'ticks')
      },
    },
  ),
]
