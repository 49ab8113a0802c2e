/** The list of versions, which the root of the site has: releases after this one extend it. */

/** Fills the list. A site that is read from files, or alone, keeps its one version. */
export async function startVersions(root: string, page: string, version: string): Promise<void> {
  const select = document.querySelector<HTMLSelectElement>('.versions select')
  if (select === null) return
  const known = await versionsAt(`${root}../versions.json`)
  if (known === undefined || !known.versions.includes(version)) return
  select.replaceChildren(
    ...known.versions.map(each => new Option(each, each, each === version, each === version)),
  )
  select.disabled = false
  select.addEventListener('change', async () => {
    location.href = await pageIn(`${root}../${select.value}/`, page)
  })
  if (known.newest === version) return
  const notice = document.querySelector<HTMLElement>('.newer')
  if (notice === null) return
  const link = document.createElement('a')
  link.href = await pageIn(`${root}../${known.newest}/`, page)
  link.textContent = known.newest
  notice.append(`This page is about ${version}. The newest release is `, link, '.')
  notice.hidden = false
}

async function versionsAt(
  address: string,
): Promise<{ readonly newest: string; readonly versions: readonly string[] } | undefined> {
  try {
    const response = await fetch(address)
    return response.ok ? await response.json() : undefined
  } catch {
    return undefined
  }
}

/** Returns the address of the same page in another version, or of that version's first page if it has none. */
async function pageIn(version: string, page: string): Promise<string> {
  try {
    const { ok } = await fetch(version + page, { method: 'HEAD' })
    return ok ? version + page : `${version}index.html`
  } catch {
    return `${version}index.html`
  }
}
