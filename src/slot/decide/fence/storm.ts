/**
 * Most nodes silent at once is more likely a fault of the network, or of this operator's view, than the end of these
 * nodes: no pod takes over then.
 *
 * @param silent nodes with a primary that a voter has stated to be silent.
 * @param armed nodes with a primary that has voters.
 */
export const isStorm = (silent: number, armed: number): boolean => silent >= 2 && silent * 2 > armed

/** A node that is silent for longer counts for no storm any more, ms: it is lost, whatever becomes of other nodes. */
export const stormLastsMs = 60_000

/** A storm that ends sooner was the error of a voter that had lost its peers, ms: the nodes write to the API server. */
const briefMs = 3_000

/**
 * Returns for how long no pod takes over after the last sign of a storm, ms: nodes come back one after the other.
 *
 * @param lastedMs from its first sign to its last.
 */
export const holdsMs = (lastedMs: number): number => (lastedMs < briefMs ? 1_000 : 30_000)
