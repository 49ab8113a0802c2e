/** Lines of a long message that are displayed: what was expected stands first, and the latest of a log last. */
const [firstLines, lastLines] = [3, 6]
const lineLimit = 500

/** Returns a message for the end of a run, where many may stand. */
export function brief(message: string): string {
  const lines = message
    .trim()
    .split('\n')
    .map(line => (line.length > lineLimit ? `${line.slice(0, lineLimit)} …` : line))
  const left = lines.length - firstLines - lastLines
  const shown =
    left > 1 ? [...lines.slice(0, firstLines), `… ${left} lines …`, ...lines.slice(-lastLines)] : lines
  return shown.join('\n  ')
}
