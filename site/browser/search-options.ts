/** Options that the builder of the index and its reader must share. */
export const searchOptions = {
  fields: ['title', 'page', 'text'],
  storeFields: ['title', 'page'],
  searchOptions: { prefix: true, fuzzy: 0.15, boost: { title: 4, page: 2 }, combineWith: 'AND' as const },
}
