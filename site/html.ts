/** Text as HTML. */

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, sign => entities[sign] ?? sign)

const signs = new Map(Object.entries(entities).map(([sign, entity]) => [entity, sign]))

/** Returns the words of HTML, without tags. */
export const textOfHtml = (html: string): string =>
  html
    .replace(/<!--.*?-->/gs, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/&(?:amp|lt|gt|quot|#39);/g, entity => signs.get(entity) ?? entity)
    .replace(/\s+/g, ' ')
    .trim()
