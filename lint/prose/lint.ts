/** Lints prose with textlint and the rules of this project. */

import { TextlintKernel, type TextlintMessage, type TextlintRuleReporter } from '@textlint/kernel'
import { parse } from '@textlint/markdown-to-ast'
import { SentenceSplitterSyntax, split } from 'sentence-splitter'
import { plainRules } from './rules.ts'
import { proseOf } from './texts.ts'

export interface Finding {
  readonly path: string
  /** From 1. */
  readonly line: number
  readonly sentence: string
  readonly advice: string
}

export interface Linted {
  readonly sentences: number
  readonly findings: readonly Finding[]
}

/** The published plugin for Markdown, without its default export: loaders of CommonJS disagree on that. */
class Markdown {
  availableExtensions() {
    return ['.md']
  }
  processor() {
    return {
      preProcess: parse,
      postProcess: (messages: TextlintMessage[], filePath = '') => ({ messages, filePath }),
    }
  }
}

const kernel = new TextlintKernel()

/** @throws Error where a source file cannot be parsed. */
export async function lintProse(path: string, source: string): Promise<Linted> {
  let sentences = 0
  const findings: Finding[] = []
  const rule: TextlintRuleReporter = ({ Syntax }) => {
    const check = ({
      raw,
      loc,
    }: {
      readonly raw: string
      readonly loc: { readonly start: { readonly line: number } }
    }) => {
      for (const sentence of split(raw)) {
        if (sentence.type !== SentenceSplitterSyntax.Sentence) continue
        const text = sentence.raw
          .replaceAll(/`[^`]*`/gu, '`code`')
          .replaceAll(/\s+/gu, ' ')
          .trim()
        sentences += 1
        const broken = plainRules.find(({ pattern }) => pattern.test(text))
        if (broken !== undefined)
          findings.push({
            path,
            line: loc.start.line + sentence.loc.start.line - 1,
            sentence: text,
            advice: broken.advice,
          })
      }
    }
    return { [Syntax.Paragraph]: check, [Syntax.TableCell]: check }
  }
  await kernel.lintText(proseOf(path, source), {
    ext: '.md',
    filePath: path,
    plugins: [{ pluginId: 'markdown', plugin: { Processor: Markdown } }],
    rules: [{ ruleId: 'plain-english', rule }],
  })
  return { sentences, findings }
}
