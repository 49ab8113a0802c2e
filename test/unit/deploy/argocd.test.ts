import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { debianPackages } from '../../../build/debian.ts'
import { run } from '../../../build/run.ts'
import { text } from './manifests.ts'

let lua: (code: string) => Promise<string>
beforeAll(async () => {
  // Argo CD's language level is Lua 5.1. It runs with its own loader, because the machine's C library may be older.
  const { root } = await debianPackages(['lua5.1'])
  const loader = (await readdir(join(root, 'usr/lib64'))).find(name => name.startsWith('ld-linux')) ?? ''
  const libraries = (await readdir(join(root, 'usr/lib'))).find(name => name.endsWith('-linux-gnu')) ?? ''
  lua = code =>
    run(join(root, 'usr/lib64', loader), [
      ...['--library-path', join(root, 'usr/lib', libraries)],
      ...[join(root, 'usr/bin/lua5.1'), '-e', code],
    ])
}, 300_000)

/** Returns a JSON value as a Lua expression. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(literal).join(',')}}`
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value)
      .map(([key, field]) => `[${JSON.stringify(key)}]=${literal(field)}`)
      .join(',')}}`
  }
  return JSON.stringify(value)
}

async function healthOf(object: unknown): Promise<string> {
  const { data } = parse(await text('deploy/argocd/argocd-cm.yaml')) as { data: Record<string, string> }
  const rule = data['resource.customizations.health.backup.example.com_BackupPodSet'] ?? ''
  const answer = await lua(`
    obj = ${literal(object)}
    local result = (function()
      ${rule}
    end)()
    print(result.status .. ': ' .. tostring(result.message))`)
  return answer.trim()
}

const set = (conditions: Record<string, string>, more: Record<string, unknown> = {}) => ({
  metadata: { generation: 3 },
  status: {
    observedGeneration: 3,
    conditions: Object.entries(conditions).map(([type, status]) => ({
      type,
      status,
      message: `${type} ${status}`,
    })),
  },
  ...more,
})

test.each([
  [
    'just created',
    { metadata: { generation: 1 } },
    'Progressing: The operator has not seen this generation yet',
  ],
  [
    'changed since the last look',
    set({ Ready: 'True' }, { metadata: { generation: 4 } }),
    'Progressing: The operator has not seen this generation yet',
  ],
  ['complete', set({ Ready: 'True', Degraded: 'False', Paused: 'False' }), 'Healthy: Ready True'],
  ['on its way', set({ Ready: 'False', Progressing: 'True' }), 'Progressing: Ready False'],
  ['degraded', set({ Ready: 'False', Degraded: 'True' }), 'Degraded: Degraded True'],
  ['stalled', set({ Ready: 'False', Stalled: 'True' }), 'Degraded: Stalled True'],
  ['paused', set({ Ready: 'True', Paused: 'True' }), 'Suspended: Paused True'],
  ['without conditions', set({}), 'Progressing: No condition Ready yet'],
  [
    'being deleted',
    set({ Ready: 'True' }, { metadata: { generation: 3, deletionTimestamp: '2026-01-01T00:00:00Z' } }),
    'Progressing: Being deleted',
  ],
])('a set that is %s', async (_, object, health) => {
  expect(await healthOf(object)).toBe(health)
})
