import { expect, it } from 'vitest'
import { headersIn, tracesUrl } from './options.ts'

it.each([
  ['http://collector:4318', 'http://collector:4318/v1/traces'],
  ['http://collector:4318/', 'http://collector:4318/v1/traces'],
  ['https://host.example/otlp', 'https://host.example/otlp/v1/traces'],
  ['https://host.example/v1/traces?a=b', 'https://host.example/v1/traces?a=b'],
])('the endpoint %s stands for %s', (endpoint, url) => {
  expect(tracesUrl(endpoint)).toBe(url)
})

it.each(['collector:4318', 'grpc://collector:4317', 'http://', 'http://user:secret@collector'])(
  'refuses %s',
  endpoint => {
    expect(() => tracesUrl(endpoint)).toThrow(/must/)
  },
)

it.each([
  [undefined, {}],
  ['', {}],
  ['Authorization=Basic%20YTpi, x-scope = one ', { authorization: 'Basic YTpi', 'x-scope': 'one' }],
  ['=x,a b=c,broken=%zz,evil=a%0d%0ab,ok=1', { ok: '1' }],
])('reads the headers %s', (text, headers) => {
  expect(headersIn(text)).toEqual(headers)
})
