/** The init container that holds a cold backup back: its name and port are part of the API, since templates may not use them. */

export const gateContainerName = 'understudy-gate'

/** TCP, on the pod's own address. */
export const gatePort = 20_000
