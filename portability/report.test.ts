import { describe, expect, it } from 'vitest'
import { generatedPart, marks, outcomeText, resultText, withGeneratedPart } from './report.ts'
import type { KindResult } from './results.ts'

const green: KindResult = {
  kind: 'debian-13',
  title: 'Debian 13',
  date: '2026-11-29',
  commit: 'abc1234',
  machine: '2 x CPU, 23 GiB, Linux 6.18',
  facts: {
    os: 'Debian GNU/Linux 13 (trixie)',
    kernel: '6.12.1-cloud-amd64',
    cgroups: 'v2',
    systemd: '257.13',
    runtime: 'containerd://1.7.24',
    runc: '1.1.15',
    kubelet: 'v1.36.3',
    securityModules: 'apparmor,yama',
  },
  canary: { kind: 'ok', seconds: 12.4 },
  trials: {
    frozen: { kind: 'ok', seconds: 3 },
    cold: { kind: 'failed', reason: 'not within 900 s: a | b\nof it' },
  },
  labels: ['cri-containerd.apparmor.d (enforce)'],
  doctor: [],
}

const refused: KindResult = {
  ...green,
  kind: 'debian-12',
  title: 'Debian 12',
  canary: { kind: 'failed', reason: 'canary: it cannot be saved' },
  trials: { frozen: { kind: 'refused', reason: 'the node is not ready for memory' } },
  doctor: ['debian-12 canary: it cannot be saved'],
}

describe('the table of a run', () => {
  it('has a row for each node, and below it every reason', () => {
    const text = resultText([green, refused])
    expect(text.split('\n')).toHaveLength(7)
    expect(text).toContain('containerd 1.7.24, runc 1.1.15')
    expect(text).toContain('debian-13, cold wake: not within 900 s')
    expect(text).toContain('debian-12, doctor: debian-12 canary: it cannot be saved')
  })

  it('shows a trial that was not chosen as a dash', () => {
    expect(outcomeText(undefined)).toBe('-')
    expect(outcomeText({ kind: 'ok', seconds: 3.4 })).toBe('ok (3 s)')
  })

  it('is one row in Markdown, whatever a reason contains', () => {
    const part = generatedPart([green])
    expect(part).toContain('not within 900 s: a \\| b of it')
    expect(part.split('\n').filter(line => line.startsWith('|'))).toHaveLength(3)
    expect(part).toContain('`cri-containerd.apparmor.d (enforce)`')
  })
})

describe('the generated part of the page', () => {
  it('replaces itself and nothing else', () => {
    const page = `before\n${marks.begin}\nold\n${marks.end}\nafter\n`
    const part = generatedPart([green])
    const once = withGeneratedPart(page, part)
    expect(once).toBe(`before\n${part}\nafter\n`)
    expect(withGeneratedPart(once, part)).toBe(once)
  })

  it('is refused by a page without marks', () => {
    expect(() => withGeneratedPart('no marks', '')).toThrow('the page has no part')
  })
})
