import { describe, expect, it } from 'vitest'
import { parseSet } from '../src/api/parse.ts'
import { specOf, trialNames, trials } from './trials.ts'
import { findingsAbout, versionIn } from './try-kind.ts'

const nodes = ['debian-13-a', 'debian-13-b']

describe('the trials', () => {
  it.each(trials)('$name is a set that the operator accepts', trial => {
    const metadata = { name: trial.name, namespace: 'portability', uid: 'u', resourceVersion: '1' }
    const set = { apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet', metadata }
    expect(parseSet({ ...set, spec: specOf(trial, nodes) })).toMatchObject({ ok: true })
  })

  it('have their pods on the nodes of that kind, each on another one', () => {
    expect(trials.map(({ name }) => name)).toEqual([...trialNames])
    for (const trial of trials) {
      const { template, antiAffinity, hotBackups = 0, coldBackups = 0 } = specOf(trial, nodes)
      expect(hotBackups + coldBackups).toBe(1)
      expect(antiAffinity).toBe('Required')
      expect(JSON.stringify(template.spec?.affinity?.nodeAffinity)).toContain(JSON.stringify(nodes))
    }
  })

  it('run as root, as uid 1000 and on a read-only root', () => {
    const users = trials.map(trial => specOf(trial, nodes).template.spec?.securityContext?.runAsUser)
    expect(users).toEqual([0, undefined, 1000, undefined])
    const containers = trials.map(trial => specOf(trial, nodes).template.spec?.containers[0])
    expect(containers.map(it => it?.securityContext?.readOnlyRootFilesystem)).toEqual([
      undefined,
      undefined,
      undefined,
      true,
    ])
  })
})

describe('the facts of a node', () => {
  it.each([
    ['systemd 257 (257.13-1~deb13u1)', '257.13'],
    ['runc version 1.1.15+ds1', '1.1.15'],
    ['odd', 'odd'],
  ])('%s has version %s', (line, version) => {
    expect(versionIn(line)).toBe(version)
  })

  it('are broken where doctor says so, and only on that node', () => {
    const finding = { area: 'nodes', verdict: 'broken', message: 'no' }
    const findings = [
      { ...finding, about: 'debian-13 canary' },
      { ...finding, about: 'debian-13-containerd-2 canary' },
      { ...finding, about: 'debian-13 criu', verdict: 'ok' },
    ]
    expect(findingsAbout(JSON.stringify({ broken: 2, findings }), 'debian-13')).toEqual([
      'debian-13 canary: no',
    ])
  })
})
