import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { debianPackages } from '../../../build/debian.ts'
import { run } from '../../../build/run.ts'
import { manifest, project } from './manifests.ts'

let scratch = ''
afterEach(() => rm(scratch, { recursive: true, force: true }))

test('the alerts do what prometheus-rule.test.yaml says, by the judgement of promtool', async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-alerts-'))
  const tree = await debianPackages(['promtool'], { dependencies: false })
  const promtool = join(tree.root, 'usr/bin/promtool')
  const rule = await manifest<{ spec: unknown }>('deploy/alerts/prometheus-rule.yaml')
  await writeFile(join(scratch, 'rules.yaml'), stringify(rule.spec))
  await copyFile(join(project, 'deploy/alerts/prometheus-rule.test.yaml'), join(scratch, 'test.yaml'))
  await run(promtool, ['check', 'rules', '--lint-fatal', join(scratch, 'rules.yaml')])
  expect(await run(promtool, ['test', 'rules', join(scratch, 'test.yaml')])).toContain('SUCCESS')
}, 300_000)
