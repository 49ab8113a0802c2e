/**
 * Returns the most that a user may have of a total: this share of the part that all others leave. Even when one user
 * has all it may, the next finds a share of the rest, so no user ever finds nothing. It is the dynamic threshold by
 * which switches share a memory among their ports (Choudhury and Hahne, 1998).
 *
 * @param share 0 to 1.
 */
export const mostOf = (total: number, others: number, share: number): number => (total - others) * share
