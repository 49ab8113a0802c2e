/** An operator that leads has seen an object by then, ms. */
export const unseenMs = 15_000
