/** Applications whose memory the tests move, each as a pod template and a way to change and read its state. */

import { connect } from 'node:net'
import { demanding } from './demanding.ts'
import { answerOf, httpSpecimen, must, numberIn, patienceMs, type Specimen } from './http-specimen.ts'

export type { Specimen } from './http-specimen.ts'

const counter = { image: 'understudy.invalid/counter:0.1.0' } as const
const node = { command: ['/usr/bin/node', '/zoo/server.mjs'] } as const
const python = { command: ['/usr/bin/python3', '/zoo/server.py'] } as const
const notebook = [{ name: 'NOTEBOOK', value: '/shared/notebook' }] as const
const shared = [{ name: 'shared', mountPath: '/shared' }] as const

/**
 * Sends one command over a connection of its own. Resolves with the reply's first line, or the bulk string after it.
 */
function redis(ip: string, ...words: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: ip, port: 6379 })
    let text = ''
    socket.setTimeout(patienceMs, () => socket.destroy(new Error('redis does not answer')))
    socket.on('error', reject).setEncoding('utf8')
    socket.on('data', (data: string) => {
      text += data
      const [head = '', bulk] = text.split('\r\n')
      if (!text.endsWith('\r\n') || (head.startsWith('$') && head !== '$-1' && bulk === undefined)) return
      socket.end()
      resolve(head.startsWith('$') ? (bulk ?? '') : head.slice(1))
    })
    socket.end(`*${words.length}\r\n${words.map(word => `$${word.length}\r\n${word}\r\n`).join('')}`)
  })
}

export const specimens: readonly Specimen[] = [
  {
    name: 'redis',
    program: 'redis-server',
    protocol: 'redis',
    port: 6379,
    template: {
      metadata: { labels: { app: 'redis' } },
      spec: {
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 5,
        containers: [
          {
            name: 'redis',
            image: 'understudy.invalid/redis:8.0',
            imagePullPolicy: 'IfNotPresent',
            ports: [{ containerPort: 6379 }],
            readinessProbe: { tcpSocket: { port: 6379 }, periodSeconds: 1 },
          },
        ],
      },
    },
    add: async ip => {
      const count = await redis(ip, 'INCR', 'count')
      await redis(ip, 'SET', `key-${count}`, 'x'.repeat(100))
    },
    read: async ip => Number((await redis(ip, 'GET', 'count')) || 0),
    check: async (ip, value) => must('redis keys', await redis(ip, 'DBSIZE'), String(value + 1)),
  },
  httpSpecimen('counter', 'counter', counter),
  httpSpecimen('nodejs', 'node', node, {
    check: async (ip, value) => {
      const before = await answerOf(ip, 8080, '/peek')
      must('the map', before['visitors'], value)
      await new Promise(resolve => setTimeout(resolve, 500))
      // Its timers must continue, too.
      if (numberIn(await answerOf(ip, 8080, '/peek'), 'ticks') <= numberIn(before, 'ticks'))
        throw new Error('the timer stands still')
    },
  }),
  httpSpecimen('python', 'python3', python),
  httpSpecimen(
    'prefork',
    'prefork',
    { command: ['/zoo/prefork'] },
    {
      check: async (ip, value) =>
        must('the sum over all threads', numberIn(await answerOf(ip, 8080, '/peek'), 'sum'), value),
    },
  ),
  httpSpecimen(
    'shared-directory',
    'python3',
    { ...python, env: [...notebook], volumeMounts: [...shared] },
    {
      pod: { volumes: [{ name: 'shared', emptyDir: {} }] },
      beside: [
        {
          name: 'reader',
          image: 'understudy.invalid/zoo:0.1.0',
          imagePullPolicy: 'IfNotPresent',
          ...python,
          command: [...python.command],
          env: [...notebook, { name: 'READER', value: '1' }, { name: 'PORT', value: '8081' }],
          volumeMounts: [...shared],
        },
      ],
      check: async (ip, value) => {
        must('lines in the notebook', (await answerOf(ip, 8080, '/peek'))['noted'], value)
        must('lines that the other container sees', (await answerOf(ip, 8081, '/peek'))['count'], value)
      },
    },
  ),
  httpSpecimen('no-rights', 'node', {
    ...node,
    securityContext: {
      runAsUser: 1000,
      runAsGroup: 1000,
      runAsNonRoot: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    },
  }),
  httpSpecimen('read-only', 'counter', {
    ...counter,
    securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
  }),
  ...demanding,
]

/** @throws Error if no specimen has that name */
export function specimen(name: string): Specimen {
  const found = specimens.find(it => it.name === name)
  if (found === undefined)
    throw new Error(`no specimen ${name}: there are ${specimens.map(it => it.name).join(', ')}`)
  return found
}
