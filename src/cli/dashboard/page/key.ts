const item = 'key'

/**
 * Returns the key of the address that was opened, and takes it out of the address, so that it is in no bookmark or screenshot. The tab keeps
 * it for reloads: programs on other ports of this machine cannot read its storage.
 */
export function takeKey(): string {
  const given = new URLSearchParams(location.hash.slice(1)).get(item)
  if (given !== null) {
    sessionStorage.setItem(item, given)
    history.replaceState(null, '', location.pathname)
  }
  return sessionStorage.getItem(item) ?? ''
}
