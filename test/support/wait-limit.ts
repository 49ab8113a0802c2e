/** Time after which a wait of a test gives up, ms. It is against what hangs: how fast something is says nothing on a busy machine. */
export const waitLimitMs = 150_000
