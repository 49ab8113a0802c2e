/** Three users and the blocks that each of them types, in order. */
import type { Link } from './page.ts'

export interface Step {
  readonly does: string
  readonly link: Link
  /** The milestone that is reached once the last command of the block has ended. */
  readonly reaches?: string
}

export interface Target {
  readonly milestone: string
  readonly minutes: number
  /** Stands behind the number. */
  readonly when: string
}

export interface User {
  readonly name: string
  readonly is: string
  /** `existing`: a kubeconfig of a cluster that was there before; `none`: the pages make one. */
  readonly cluster: 'existing' | 'none'
  /** Programs that the user has beside those of the system and kubectl. */
  readonly has: readonly 'helm'[]
  readonly steps: readonly Step[]
  readonly targets: readonly Target[]
}

const install = 'docs/install.md'
const kind = 'docs/try-on-kind.md'

const firstFailover: Target = {
  milestone: 'first failover with memory',
  minutes: 5,
  when: 'on an existing cluster',
}

const images: readonly Step[] = [
  { does: 'build the images', link: { page: install, marker: 'images' } },
  { does: 'bring them to the nodes', link: { page: install, marker: 'images-to-nodes' } },
]

const platform: User = {
  name: 'platform',
  is: 'a platform engineer with a cluster of their own',
  cluster: 'existing',
  has: ['helm'],
  steps: [
    ...images,
    { does: 'install with Helm', link: { page: install, marker: 'helm-install' } },
    { does: 'protect the gates', link: { page: install, heading: 'In every namespace' } },
    { does: 'ask the doctor', link: { page: kind, heading: '4. Can these nodes keep memory?' } },
    { does: 'apply a sample', link: { page: kind, marker: 'sample' } },
    {
      does: 'first failover',
      link: { page: kind, marker: 'failover' },
      reaches: firstFailover.milestone,
    },
    { does: 'install the program for users', link: { page: 'docs/cli.md', heading: 'kubectl understudy' } },
    { does: 'drill', link: { page: 'docs/cli.md', heading: 'Drills' } },
    { does: 'upgrade', link: { page: install, marker: 'helm-upgrade' } },
    { does: 'remove everything', link: { page: install, marker: 'helm-uninstall' } },
  ],
  targets: [firstFailover],
}

const game: User = {
  name: 'game',
  is: 'a game engineer whose server keeps a match in memory',
  cluster: 'existing',
  has: [],
  steps: [
    ...images,
    { does: 'install with kubectl', link: { page: 'README.md', heading: 'Your own cluster' } },
    { does: 'begin two matches', link: { page: 'docs/game-server.md', heading: 'Two matches' } },
    { does: 'play', link: { page: 'docs/game-server.md', heading: 'Play' } },
    {
      does: 'lose the server',
      link: { page: 'docs/game-server.md', heading: 'Lose the server' },
      reaches: firstFailover.milestone,
    },
    { does: 'end the matches', link: { page: 'docs/game-server.md', heading: 'End it' } },
  ],
  targets: [firstFailover],
}

const paper: User = {
  name: 'paper',
  is: 'a reader of the paper',
  cluster: 'none',
  has: [],
  steps: [
    { does: 'see the demo', link: { page: 'README.md', heading: 'See it' }, reaches: 'demo' },
    { does: 'take its cluster down', link: { page: 'docs/try.md', marker: 'demo-down' } },
    { does: "measure the paper's operations", link: { page: 'docs/paper.md', marker: 'bench' } },
  ],
  targets: [
    { milestone: 'demo', minutes: 12, when: 'with an empty cache' },
    { milestone: 'demo', minutes: 1, when: 'with a warm cache' },
  ],
}

export const users: readonly User[] = [platform, game, paper]
