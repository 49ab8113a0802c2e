/** Finds casts in tests that the type checker cannot question. */
import { type Span, Visitor } from 'oxc-parser'
import { parseTypeScript } from '../parse.ts'

export interface Cast {
  readonly path: string
  /** From 1. */
  readonly line: number
}

/**
 * Returns the casts through another type (`as unknown as Pod`), and to `never` or `any`. The type checker accepts any
 * value there, so it does not notice when a field of the real type is renamed. A single cast (`as Pod`) it still checks.
 */
export function castsOf(path: string, source: string): readonly Cast[] {
  const casts: Cast[] = []
  const textOf = ({ start, end }: Span) => source.slice(start, end)
  new Visitor({
    TSAsExpression({ expression, typeAnnotation, start }) {
      const inner = expression.type === 'ParenthesizedExpression' ? expression.expression : expression
      const isDouble = inner.type === 'TSAsExpression' && textOf(inner.typeAnnotation) !== 'const'
      const isBlind = typeAnnotation.type === 'TSNeverKeyword' || typeAnnotation.type === 'TSAnyKeyword'
      if (isDouble || isBlind) casts.push({ path, line: source.slice(0, start).split('\n').length })
    },
  }).visit(parseTypeScript(path, source).program)
  return casts
}

/** Returns the sentence that refuses a cast. */
export const refusalOf = ({ path, line }: Cast): string =>
  `${path}:${line}: the type checker cannot question this cast: build a complete object (testing/), let the code take a Pick<>, or use forged() of test/support for bad input`
