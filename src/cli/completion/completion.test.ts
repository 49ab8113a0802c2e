import { execFile } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Command, Option } from 'commander'
import { describe, expect, test } from 'vitest'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { runCli } from '../program.ts'
import { set } from '../testing/objects.ts'
import { makeSession } from '../testing/session.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import { namesOf } from './names.ts'
import { completionScript } from './scripts.ts'
import { commandLine } from './want.ts'

const root = new Command('x')
  .option('-n, --namespace <name>', 'namespace')
  .option('--kubeconfig <file>', 'file')
  .addOption(new Option('-o, --output <format>', 'format').choices(['wide', 'json']))
root.command('status [set]').description('Show.').option('-w, --watch', 'watch')
root.command('move').argument('<set>').argument('<slot>').option('--to <node>', 'node')
const want = (...typed: string[]) => commandLine(root, typed)
const wordsOf = async (...typed: string[]) => {
  const terminal = recordingTerminal()
  const exitCode = await runCli(['__complete', ...typed], terminal, new AbortController().signal)
  expect([exitCode, terminal.told]).toEqual([0, []])
  return terminal.written
    .join('\n')
    .split('\n')
    .map(line => line.split('\t')[0])
}

describe('D19.completion: what could come next', () => {
  test.each([
    [
      ['sta'],
      {
        kind: 'words',
        words: [
          { word: 'status', about: 'Show.' },
          { word: 'move', about: '' },
        ],
      },
    ],
    [['status', ''], { kind: 'names', of: 'set' }],
    [['-n', 'shop', 'status', ''], { kind: 'names', of: 'set' }],
    [['move', 'web', ''], { kind: 'names', of: 'slot' }],
    [['move', 'web', '0', ''], { kind: 'words', words: [] }],
    [['move', 'web', '0', '--to', ''], { kind: 'names', of: 'node' }],
    [['move', '--to=n'], { kind: 'names', of: 'node' }],
    [['status', '-n', ''], { kind: 'names', of: 'namespace' }],
    [['status', '--kubeconfig', ''], { kind: 'file' }],
    [['status', '-o', ''], { kind: 'words', words: [{ word: 'wide' }, { word: 'json' }] }],
  ])('%j', (typed, expected) => {
    expect(want(...typed).want).toEqual(expected)
  })

  test('options before it are known, also as bash splits them', () => {
    expect(Object.fromEntries(want('--namespace', '=', 'shop', 'move', 'web', '').options)).toEqual({
      '--namespace': 'shop',
    })
    expect(want('move', 'web', '').args).toEqual(['web'])
    expect(want('move', '--to', '=').prefix).toBe('')
    expect(want('move', '--to=n1').prefix).toBe('n1')
  })

  test('words of this program need no cluster', async () => {
    expect(await wordsOf('mi')).toEqual(['migrations', ':4'])
    expect(await wordsOf('completion', 'z')).toEqual(['zsh', ':4'])
    expect(await wordsOf('status', '--al')).toEqual(['--all-namespaces', ':4'])
    expect(await wordsOf('status', '--kubeconfig', '')).toEqual([':0'])
  })

  test('a cluster that cannot be reached costs no message and no names', async () => {
    expect(await wordsOf('--kubeconfig', '/nowhere', 'status', '')).toEqual([':4'])
  })

  test('slots come from the set that was named, with their pods', async () => {
    const api = fakeApi({ get: async () => set() })
    const { call } = makeSession()
    expect(await namesOf({ api, call, namespace: 'shop' }, 'slot', { args: ['web'] })).toEqual([
      { word: '0', about: 'web-p on n1' },
    ])
  })
})

test('D19.completion: bash completes with what the program says', async () => {
  const scratch = await mkdtemp(join(tmpdir(), 'understudy-completion-'))
  try {
    const program = join(scratch, 'kubectl-understudy')
    await writeFile(
      program,
      `#!/bin/sh\nprintf 'web\\tone\\nweb-2\\tother\\nshop\\n:4\\n'; echo "$*" > ${scratch}/typed\n`,
    )
    await chmod(program, 0o755)
    const script = `${completionScript('bash')}
      COMP_WORDS=(${program} status --namespace = shop we) COMP_CWORD=5
      _kubectl_understudy; echo "\${COMPREPLY[@]}"; cat ${scratch}/typed`
    const { stdout } = await promisify(execFile)('bash', ['-c', script])
    expect(stdout).toBe('web web-2\n__complete status --namespace = shop we\n')
  } finally {
    await rm(scratch, { recursive: true })
  }
})
