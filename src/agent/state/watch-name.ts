export interface WatchName {
  readonly uid: string
  readonly container: string
  readonly containerId: string
}

/**
 * A watch's name carries what a restarted agent must know: the pod, the container, and the container's id at that time.
 */
export const watchName = ({ uid, container, containerId }: WatchName): string =>
  `${uid}/${container}/${shortId(containerId)}`

export function parseWatchName(name: string): WatchName | undefined {
  const [uid, container, containerId, ...more] = name.split('/')
  if (!uid || !container || !containerId || more.length > 0) return undefined
  return { uid, container, containerId }
}

export const shortId = (containerId: string): string => containerId.replace(/^.*:\/\//, '').slice(0, 16)
