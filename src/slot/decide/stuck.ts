import type { Copy } from './memory-view.ts'

/** Reasons in a report why no newer memory reaches its node. */
const stuckReasons: ReadonlySet<string> = new Set([
  'StoreFull',
  'PeerUnreachable',
  'PeerSilent',
  'PeerKeyDiffers',
  'PeerForeign',
])

/** True if the node of the copy reports that no newer memory reaches it. */
export const reportsStuck = ({ report }: Pick<Copy, 'report'>): boolean =>
  stuckReasons.has(report.reason ?? '')
