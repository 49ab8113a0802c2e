import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type SiteServer, serve } from './serve.ts'

let directory: string
let server: SiteServer

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'understudy-site-serve-'))
  await mkdir(join(directory, 'site/docs'), { recursive: true })
  await writeFile(join(directory, 'secret.html'), 'secret')
  await writeFile(join(directory, 'site/docs/index.html'), 'page')
  server = await serve(join(directory, 'site'), 0)
})
afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

/** Sends a path as it is: fetch would resolve its steps upwards. */
const ask = (path: string, method = 'GET') =>
  new Promise<{ readonly status: number; readonly body: string; readonly location: string | undefined }>(
    (resolve, reject) => {
      request(server.address, { path, method }, response => {
        let body = ''
        response.on('data', chunk => {
          body += String(chunk)
        })
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body, location: response.headers.location }),
        )
      })
        .on('error', reject)
        .end()
    },
  )

test('D23.command: the server has the files of its folder, and the index of each folder', async () => {
  expect(server.address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/)
  expect(await ask('/docs/index.html')).toMatchObject({ status: 200, body: 'page' })
  expect(await ask('/docs/')).toMatchObject({ status: 200, body: 'page' })
  expect(await ask('/docs')).toMatchObject({ status: 308, location: '/docs/' })
  expect(await ask('/docs/index.html', 'HEAD')).toMatchObject({ status: 200, body: '' })
})

test.each([
  '/../secret.html',
  '/%2e%2e/secret.html',
  '/docs/..%2f..%2fsecret.html',
  '/..%5csecret.html',
  '//x/../../secret.html',
])('D23.command: %s leads out of the folder of the server to nothing', async path => {
  const { status, body } = await ask(path)
  expect(body).toBe('')
  expect([400, 404]).toContain(status)
})

test('D23.command: the server only reads', async () => {
  expect((await ask('/docs/index.html', 'POST')).status).toBe(405)
  expect((await ask('/')).status).toBe(404)
})
