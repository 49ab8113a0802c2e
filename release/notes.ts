/**
 * Returns the part of CHANGELOG.md about a version as the notes of its release. Before the version has a heading of its
 * own, that is the part `Unreleased`.
 * @throws if there is neither, or nothing under it
 */
export function notesOf(changelog: string, version: string): string {
  const sections = changelog
    .split(/^## /m)
    .slice(1)
    .map(section => {
      const [heading = ''] = section.split('\n')
      // `[0.1.0] - 2026-01-02`, or shorter.
      const [name = ''] = heading.replaceAll(/[[\]]/g, '').split(' ')
      return { name, body: section.slice(heading.length).trim() }
    })
  const section =
    sections.find(({ name }) => name === version) ?? sections.find(({ name }) => name === 'Unreleased')
  if (section === undefined || section.body === '')
    throw new Error(
      `CHANGELOG.md says nothing about ${version}: write what users notice under "## ${version}"`,
    )
  return `# Understudy ${version}\n\n${section.body}\n`
}
