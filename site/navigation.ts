/** The navigation of the site: every page, by what a reader wants. */

/** `listed` pages are shown by title, those of `folder` below a line that opens. */
export interface NavigationGroup {
  readonly title: string
  /** Paths of Markdown files, from the project's directory. */
  readonly pages: readonly string[]
  /** All Markdown files of this folder, by name, in addition to `pages`. */
  readonly folder?: { readonly title: string; readonly path: string }
  /** The pages made from `crds/`, in addition to `pages`. */
  readonly reference?: true
}

export const navigation: readonly NavigationGroup[] = [
  {
    title: 'Try it',
    pages: [
      'README.md',
      'docs/is-it-for-me.md',
      'docs/concepts.md',
      'docs/try.md',
      'docs/try-on-kind.md',
      'docs/game-server.md',
    ],
  },
  {
    title: 'Install',
    pages: ['docs/install.md', 'docs/clouds.md', 'docs/portability.md', 'docs/release.md'],
  },
  {
    title: 'Use',
    pages: [
      'docs/object.md',
      'docs/memory.md',
      'docs/migration.md',
      'docs/migrating-pod.md',
      'docs/migrating-job.md',
      'docs/suspend.md',
      'docs/clone.md',
      'docs/pod-migration-job.md',
      'docs/cli.md',
      'docs/dashboard.md',
    ],
  },
  {
    title: 'Operate',
    pages: [
      'docs/operate.md',
      'docs/health-rules.md',
      'docs/runbooks.md',
      'docs/metrics.md',
      'docs/failure-model.md',
      'docs/threat-model.md',
      'SECURITY.md',
    ],
  },
  {
    title: 'Reference',
    pages: ['docs/pod-fields.md', 'docs/conventions.md', 'CHANGELOG.md'],
    reference: true,
  },
  {
    title: 'Comparison and figures',
    pages: ['docs/paper.md', 'docs/figures.md', 'docs/first-day.md', 'bench/README.md'],
  },
  {
    title: 'Design',
    pages: [
      'docs/architecture.md',
      'docs/lifecycle.md',
      'CONTRIBUTING.md',
      'src/kube/README.md',
      'drill/README.md',
      'docs/adr/README.md',
    ],
    folder: { title: 'Decisions', path: 'docs/adr/' },
  },
]

/**
 * Returns the sources that the navigation lists, in its order.
 *
 * @param sources all Markdown files that exist
 * @throws Error that names entries without a file, files that have two entries, and files of `docs/` that have none
 */
export function listedSources(
  groups: readonly NavigationGroup[],
  sources: readonly string[],
): readonly string[] {
  const listed = groups.flatMap(group => pagesOf(group, sources))
  const problems = [
    ...listed
      .filter(page => !sources.includes(page))
      .map(page => `${page} is in the navigation, and no such file exists`),
    ...listed
      .filter((page, index) => listed.indexOf(page) !== index)
      .map(page => `${page} is twice in the navigation`),
    ...sources
      .filter(page => page.startsWith('docs/') && !listed.includes(page))
      .map(page => `${page} is not in the navigation: add it to site/navigation.ts`),
  ]
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return listed
}

/** Returns the sources of a group: those that it names, then those of its folder. */
export function pagesOf({ pages, folder }: NavigationGroup, sources: readonly string[]): readonly string[] {
  return [...pages, ...folderPages(pages, folder?.path, sources)]
}

const folderPages = (pages: readonly string[], path: string | undefined, sources: readonly string[]) =>
  path === undefined
    ? []
    : sources.filter(source => source.startsWith(path) && !pages.includes(source)).toSorted()
