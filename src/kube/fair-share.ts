/**
 * The most that one of several may have of a total: this part of what all others leave. With one that has all it may, the
 * next one finds a part of the rest, and none ever finds nothing. It is the dynamic threshold by which switches share a
 * memory among their ports (Choudhury and Hahne, 1998).
 *
 * @param share 0 to 1.
 */
export const mostOf = (total: number, others: number, share: number): number => (total - others) * share
