/** Everything that the script types differently from the pages. Variables of the script begin with FIRST_DAY_. */
import type { Substitution } from './placeholders.ts'

export const substitutions: readonly Substitution[] = [
  {
    on: 'YOUR-NAMESPACE',
    by: 'default',
    because: 'the namespace of the samples in the pages',
  },
  {
    on: 'registry.example/understudy',
    page: 'docs/install.md',
    by: 'understudy.invalid',
    because: 'the page says so for nodes that have the images already; the cluster has no registry',
  },
  {
    on: 'ssh root@$node',
    by: 'npm run -s playground -- --name "$FIRST_DAY_CLUSTER" exec --inside $node',
    because: 'nodes of the playground run no sshd; this runs the same program in the same place',
  },
  {
    on: '/usr/local/bin/',
    by: '"$FIRST_DAY_BIN"/',
    because: 'a directory in the PATH that goes with the script: it leaves nothing on the machine',
  },
]
