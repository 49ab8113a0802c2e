/** The Lease by which operators elect their leader, as it is installed. Agents look there for whether one is at work. */
export const operatorElection = { namespace: 'understudy-system', name: 'understudy-operator' } as const
