/** Anchors of headings, as forges compute them: a link works on the forge and on the site. */

/** Returns a function that names the headings of one page, in their order. */
export function anchorNames(): (heading: string) => string {
  const used = new Map<string, number>()
  return heading => {
    const name = heading
      .trim()
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\- _]/gu, '')
      .replaceAll(' ', '-')
    const times = used.get(name) ?? 0
    used.set(name, times + 1)
    return times === 0 ? name : `${name}-${times}`
  }
}
