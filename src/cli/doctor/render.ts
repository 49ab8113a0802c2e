import { oneLine, type Paint } from '../terminal.ts'
import { areas, type Finding } from './finding.ts'

const marks: Readonly<Record<Finding['verdict'], readonly ['green' | 'red' | 'yellow' | 'dim', string]>> = {
  ok: ['green', '✓'],
  broken: ['red', '✗'],
  unproven: ['yellow', '~'],
  unknown: ['yellow', '?'],
  note: ['dim', '•'],
}

/**
 * Renders findings by area. The checks of a node that hold take one line, unless `all` is set, so that broken ones
 * stand out.
 */
export function renderFindings(findings: readonly Finding[], paint: Paint, all: boolean): string {
  const parts = areas.flatMap(area => {
    const found = findings.filter(finding => finding.area === area)
    if (found.length === 0) return []
    return [
      [paint('bold', area), ...(area === 'nodes' && !all ? shorter(found) : found).map(line)].join('\n'),
    ]
  })
  const broken = findings.filter(({ verdict }) => verdict === 'broken').length
  const unproven = findings.some(({ verdict }) => verdict === 'unproven')
  const sum = broken === 0 ? paint('green', 'nothing is broken') : paint('red', `${broken} broken`)
  return [...parts, unproven ? `${sum} (~: not proven to work yet)` : sum].join('\n\n')

  function line({ about, verdict, message, cure }: Finding): string {
    const [style, mark] = marks[verdict]
    const text = `  ${paint(style, mark)} ${oneLine(`${about}: ${message}`)}`
    return cure === undefined ? text : `${text}\n      → ${oneLine(cure)}`
  }
}

/** Merges the checks of a node that hold into one line, with the measurement of its canary. */
function shorter(found: readonly Finding[]): readonly Finding[] {
  const nodeOf = ({ about }: Finding) => about.split(' ')[0] ?? ''
  return [...Map.groupBy(found, nodeOf)].flatMap(([node, ofNode]) => {
    const good = ofNode.filter(({ verdict }) => verdict === 'ok')
    const others = ofNode.filter(({ verdict }) => verdict !== 'ok')
    if (good.length === 0) return others
    const canary = good.find(({ about }) => about.endsWith(' canary'))?.message
    // Not a fault, but it makes promotions on this node slower.
    const lazy = good.find(({ about }) => about.endsWith(' lazy-restore'))?.message
    const names = good.map(({ about }) => about.slice(node.length + 1)).join(', ')
    const first: Finding = {
      ...{ area: 'nodes', verdict: 'ok', about: node },
      message: others.some(({ verdict }) => verdict === 'broken')
        ? names
        : `${good.length} checks pass; canary: ${canary ?? '-'}${lazy?.includes(' at once') === true ? `; ${lazy}` : ''}`,
    }
    return [first, ...others]
  })
}
