import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { podTable } from './screen.ts'

test('pods as a table', () => {
  const row = {
    uid: 'u',
    epoch: '1',
    ip: undefined,
    ready: '1/1',
    status: 'Running',
    restarts: 0,
    inPlace: true,
    leaving: false,
  }
  const lines = podTable([
    { ...row, name: 'web-1', kind: 'primary', slot: '0', node: 'n1' },
    { ...row, name: 'web-22', kind: 'hotbackup', slot: '', node: 'node-2' },
  ]).map(stripVTControlCharacters)
  expect(lines).toEqual([
    '  NAME    TYPE       SLOT  NODE    READY  STATUS   RESTARTS',
    '  web-1   primary    0     n1      1/1    Running  0',
    '  web-22  hotbackup        node-2  1/1    Running  0',
  ])
})
