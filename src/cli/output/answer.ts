/** The result of a command: text for people, or data under a kind for programs. */
import { Document, isScalar, visit } from 'yaml'
import { printable, type Terminal } from '../terminal.ts'

/** Version of the shapes that commands print. It changes when a field gets another meaning or goes. */
const apiVersion = 'cli.backup.example.com/v1alpha1'

export type AnswerKind =
  | 'Checkpoints'
  | 'Clone'
  | 'DoctorReport'
  | 'Drill'
  | 'Evacuation'
  | 'Fence'
  | 'Pause'
  | 'Promotion'
  | 'SetStatus'
  | 'SetStatusList'
  | 'SupportBundle'
  | 'Suspension'
  | 'Uninstallation'
  | 'Versions'

export type Output = 'text' | 'wide' | 'json' | 'yaml'

/** True if a program reads the output. */
export const isData = (output: Output): boolean => output === 'json' || output === 'yaml'

/** Returns the result as the user wants it. */
export const answerText = (output: Output, kind: AnswerKind, data: object, text: () => string): string =>
  isData(output) ? encoded(output, { apiVersion, kind, ...data }) : text()

/** Prints the result as the user wants it. */
export const answer = (
  { terminal, output }: { readonly terminal: Pick<Terminal, 'out'>; readonly output: Output },
  kind: AnswerKind,
  data: object,
  text: () => string,
): void => terminal.out(answerText(output, kind, data, text))

/** Returns an object that has its kind as JSON or YAML. Each document of YAML begins with its separator. */
export function encoded(output: Output, data: object): string {
  if (output !== 'yaml') return JSON.stringify(data, undefined, 2)
  const document = new Document(data, { aliasDuplicateObjects: false })
  visit(document, {
    Scalar(_, node) {
      // Only in double quotes the terminal's escapes are those of YAML.
      if (isScalar(node) && typeof node.value === 'string' && printable(node.value) !== node.value)
        node.type = 'QUOTE_DOUBLE'
    },
  })
  return `---\n${document.toString({ lineWidth: 0 }).trimEnd()}`
}
