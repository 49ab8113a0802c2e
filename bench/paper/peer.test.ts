import { expect, test } from 'vitest'
import { peerPasses } from './peer.ts'

const line = (time: string, message: string, set: string) =>
  [time, 'INFO', 'controllers.BackupPodSet', message, JSON.stringify({ backuppodset: set })].join('\t')

test('passes over one set are read off the log of the paper’s controller', () => {
  const passes = peerPasses(
    [
      '2026-11-23T01:14:00.000Z\tINFO\tsetup\tstarting manager',
      line('2026-11-23T01:14:01.250Z', 'Reconciling Backuppodset', 'bench-peer/web-1'),
      line('2026-11-23T01:14:01.260Z', 'Changing Annotations', 'bench-peer/web-1'),
      line('2026-11-23T01:14:01.300Z', 'Reconciling Backuppodset', 'bench-peer/web-11'),
      'goroutine 1 [running]:',
    ],
    { namespace: 'bench-peer', name: 'web-1' },
  )
  expect(passes.map(({ at }) => new Date(at).toISOString())).toEqual(['2026-11-23T01:14:01.250Z'])
})
