/** The Lease for leader election among operators, as installed. Agents read it to see whether an operator leads. */
export const operatorElection = { namespace: 'understudy-system', name: 'understudy-operator' } as const
