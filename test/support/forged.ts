/**
 * Returns an object that claims to be a T and is not: input that the code under test must not trust, such as an object
 * that a later version or an attacker stored in the API server. The one cast is here, so that every other object in the
 * tests has to be what its type says.
 */
export const forged = <T>(value: unknown): T => value as T
